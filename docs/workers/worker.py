import asyncio, json, os, sys, websockets

URL = (os.environ.get("CODEQ_URL") or "http://127.0.0.1:8080").replace("http", "ws", 1) + "/v1/codeq/session"
HELLO = [{"type": "hello", "token": os.environ.get("CODEQ_TOKEN", ""), "workerId": "python"},
         {"type": "subscribe", "commands": ["square"], "window": 4, "leaseSeconds": 30}]
def square(payload):  # the work, in a thread; an exception has the task tried again later
    return {"square": payload ** 2}
async def work(ws, frame):
    answer = {"taskId": frame["task"]["id"], "leaseToken": frame["leaseToken"]}
    try:
        answer |= {"type": "result", "result": await asyncio.to_thread(square, frame["task"]["payload"])}
    except Exception as problem:
        answer |= {"type": "nack", "reason": repr(problem)}
    await ws.send(json.dumps(answer))
async def beat(ws):
    while await asyncio.sleep(10, True):
        await ws.send('{"type":"heartbeat"}')
async def main():
    async for ws in websockets.connect(URL, subprotocols=["codeq.v1"], max_size=4 << 20):
        try:
            async with asyncio.TaskGroup() as group:
                for say in ws.send(json.dumps(HELLO)), beat(ws): group.create_task(say)
                async for frame in (f async for message in ws for f in json.loads(message)):
                    if frame["type"] == "task": group.create_task(work(ws, frame))
                    elif frame["type"] in ("error", "revoked"): print(frame, file=sys.stderr)
                raise ConnectionError("the server closed the session")
        except Exception as end:
            print(repr(end), file=sys.stderr)
        await asyncio.sleep(1)  # and then connect again
asyncio.run(main())
