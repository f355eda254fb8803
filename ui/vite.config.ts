import { defineConfig } from "vite";

// All addresses are relative: the pages work below any prefix.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: { target: "es2023", assetsInlineLimit: 0, modulePreload: false },
});
