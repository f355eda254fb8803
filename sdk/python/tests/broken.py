1 / 0  # a module that cannot be imported
