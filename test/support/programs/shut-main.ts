/**
 * The service as main.ts runs it, for tests of runtimes that start while the gateway to tools is away: every request to it is
 * answered with 503 until a message from the parent process opens it. The parent gets a message for each.
 */
import { Server, type IncomingMessage, type ServerResponse } from "node:http";
import { keepCompiled } from "../../../src/ground/compile-cache.ts";

keepCompiled();
const { run, service } = await import("../../../src/serve.ts");

let isShut = true;
process.on("message", () => {
  isShut = false;
});
// The service exits when it has ended, even if its parent may still send messages.
process.channel?.unref();

const emit = Server.prototype.emit;
Server.prototype.emit = function guarded(this: Server, event: string, ...given: readonly unknown[]): boolean {
  const [request, response] = given as [IncomingMessage, ServerResponse];
  if (!isShut || event !== "request" || request.url?.endsWith("/executor/mcp") !== true)
    return Reflect.apply(emit, this, [event, ...given]);
  process.send?.("refused");
  response.writeHead(503, { "content-type": "application/json" }).end("{}");
  return true;
};

run(service);
