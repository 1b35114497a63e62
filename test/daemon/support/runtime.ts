/** A small agent runtime: `runtime.ts <port>`. Its paths do what the daemon's tests need. */
import { spawn } from "node:child_process";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";

const say = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const pieces = (await json(request)) as readonly string[];
  for (const piece of pieces) {
    // oxlint-disable-next-line no-await-in-loop -- one write after the other
    await new Promise((written) => process.stdout.write(piece, written));
  }
  response.end();
};

/** Prints 500 MB as fast as they are taken, and answers when they are. */
const flood = (response: ServerResponse): void => {
  const block = Buffer.from(`${"flood ".repeat(20)}\n`.repeat(8264));
  let left = 500;
  const more = (): void => {
    left -= 1;
    process.stdout.write(block, left === 0 ? () => response.end() : more);
  };
  more();
};

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
    case "/say":
      // Each element of the body is a write of its own.
      void say(request, response);
      return;
    case "/flood":
      flood(response);
      return;
    case "/environment":
      response.end(JSON.stringify(process.env));
      return;
    case "/spawn":
      response.end(
        JSON.stringify({ own: process.pid, child: spawn("sleep", ["1000"], { stdio: "ignore" }).pid }),
      );
      return;
    case "/leave": {
      const left = spawn("sleep", ["1000"], { stdio: "ignore", detached: true });
      left.unref();
      response.end(JSON.stringify({ left: left.pid }));
      return;
    }
    case "/stream":
      response.write("data: begun\n\n");
      return;
    default:
      response.end("runtime");
  }
});
process.stdout.write("the runtime says hello\n");
server.listen(Number(process.argv[2]), "127.0.0.1");
