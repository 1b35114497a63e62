/** A small agent runtime and upstream: `runtime.ts <port>`. Its paths do what the proxy's tests need. */
import { createServer } from "node:http";

const server = createServer((request, response) => {
  const url = request.url ?? "";
  if (url === "/crash") process.exit(3);
  if (url === "/environment") {
    response.end(JSON.stringify({ environment: process.env, cwd: process.cwd(), pid: process.pid }));
    return;
  }
  response.end("runtime");
});
process.stdout.write("the runtime says hello\n");
server.listen(Number(process.argv[2]), "127.0.0.1");
