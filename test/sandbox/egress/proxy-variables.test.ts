/** Programs that find the egress proxy by the variables of every sandbox (domain/sandbox/launch.ts). */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { FORWARDER_PORT, PROXY_VARIABLES } from "../../../src/domain/sandbox/launch.ts";

it("Node's fetch and http ask the proxy, but not for the sandbox itself", async () => {
  const asked: string[] = [];
  const proxy = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.end("proxied");
  }).listen(0, "127.0.0.1");
  // fetch opens a tunnel for plain http, too.
  proxy.on("connect", ({ url = "" }, socket) => {
    asked.push(`CONNECT ${url}`);
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    proxy.emit("connection", socket);
  });
  await once(proxy, "listening");
  const { port } = proxy.address() as AddressInfo;
  const env = Object.fromEntries(
    Object.entries(PROXY_VARIABLES).map(([name, value]) => [
      name,
      value.replaceAll(String(FORWARDER_PORT), String(port)),
    ]),
  );
  const program = `
    const text = async (url) => (await fetch(url)).text();
    const got = (url) => new Promise((resolve) => require("http").get(url, (answer) => resolve(answer.statusCode)));
    const all = async () => {
      const there = [await text("http://platform.internal/a"), await got("http://platform.internal/b")];
      console.log(JSON.stringify([...there, await text("http://127.0.0.1:${port}/c")]));
    };
    all().then(() => process.exit());`;
  const { stdout } = await promisify(execFile)(process.execPath, ["-e", program], { env });
  proxy.closeAllConnections();
  proxy.close();
  expect(JSON.parse(stdout)).toEqual(["proxied", 200, "proxied"]);
  // The last one came without the proxy: it has no absolute address and no tunnel.
  expect(asked).toEqual(["CONNECT platform.internal:80", "/a", "http://platform.internal/b", "/c"]);
});

it("a JVM gets the proxy for both schemes, and the hosts that it reaches itself", () => {
  expect(PROXY_VARIABLES["JAVA_TOOL_OPTIONS"]?.split(" ")).toEqual([
    "-Dhttp.proxyHost=127.0.0.1",
    `-Dhttp.proxyPort=${FORWARDER_PORT}`,
    "-Dhttps.proxyHost=127.0.0.1",
    `-Dhttps.proxyPort=${FORWARDER_PORT}`,
    "-Dhttp.nonProxyHosts=127.0.0.1|localhost",
  ]);
});
