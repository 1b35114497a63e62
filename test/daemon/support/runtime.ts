/** A small agent runtime: `runtime.ts <port>`. Its paths do what the daemon's tests need. */
import { spawn } from "node:child_process";
import { createServer } from "node:http";

const server = createServer((request, response) => {
  switch (request.url) {
    case "/crash":
      process.stderr.write(`about to crash with ${process.env["PROJECT_SECRET"] ?? "nothing"}\n`, () =>
        process.exit(3),
      );
      return;
    case "/crash-with-children":
      // One child in the group and one outside of it, both holding this process's output open.
      spawn("sleep", ["1000"], { stdio: ["ignore", "inherit", "inherit"] });
      spawn("sleep", ["3"], { stdio: ["ignore", "inherit", "inherit"], detached: true });
      process.exit(4);
      return;
    case "/environment":
      response.end(JSON.stringify(process.env));
      return;
    case "/spawn":
      response.end(
        JSON.stringify({ own: process.pid, child: spawn("sleep", ["1000"], { stdio: "ignore" }).pid }),
      );
      return;
    case "/stream":
      response.write("data: begun\n\n");
      return;
    default:
      response.end("runtime");
  }
});
process.stdout.write("the runtime says hello\n");
server.listen(Number(process.argv[2]), "127.0.0.1");
