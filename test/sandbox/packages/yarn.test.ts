/** Yarn 4 behind a sandbox's egress proxy, with the variables that every sandbox has. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, expect, it } from "vitest";
import { FORWARDER_PORT, PROXY_VARIABLES } from "../../../src/domain/sandbox/launch.ts";
import { type Egress, openEgress } from "../../../src/sandbox/egress.ts";
import { NetworkDouble } from "../../support/network.ts";
import { npmTarball } from "../../support/servers/package-files.ts";
import { PackageRegistry } from "../../support/servers/package-registry.ts";

const YARN = fileURLToPath(import.meta.resolve("@yarnpkg/cli-dist/bin/yarn.js"));
const HOST = "packages.example.com";
const POLICY = { allow: [HOST], secretNames: [], serviceUrl: null, llmUpstream: null };

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** As the daemon's forwarder. @returns its port */
const forwardTo = async (socketPath: string): Promise<number> => {
  const server = createServer((client) => {
    const proxy = connect(socketPath);
    client.pipe(proxy).pipe(client);
    for (const socket of [client, proxy]) socket.on("error", () => socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => server.close());
  return (server.address() as AddressInfo).port;
};

/** A sandbox's way out, behind which the registry has a public address. */
const openWay = async (directory: string, registry: PackageRegistry) => {
  const socketPath = path.join(directory, "egress.sock");
  const network = new NetworkDouble([["93.184.215.14"]], () => registry.port);
  const egress: Egress = await openEgress(socketPath, { policy: POLICY, network });
  cleanups.push(() => egress.close());
  return { dialled: network.dialled, port: await forwardTo(socketPath) };
};

it("reaches an allowed registry, and needs no setting of the project for it", async () => {
  const directory = await mkdtemp(path.join(tmpdir(), "platform-yarn-"));
  cleanups.push(() => rm(directory, { recursive: true }));
  const registry = await PackageRegistry.open();
  cleanups.push(() => registry.close());
  registry.publicUrl = `http://${HOST}`;
  registry.addNpm("alpha", "1.0.0", npmTarball("alpha", "1.0.0"));
  const { dialled, port } = await openWay(directory, registry);
  await writeFile(path.join(directory, "package.json"), '{"dependencies": {"alpha": "1.0.0"}}');
  await writeFile(path.join(directory, "yarn.lock"), "");
  const proxies = Object.entries(PROXY_VARIABLES).map(([name, value]) => [
    name,
    value.replace(String(FORWARDER_PORT), String(port)),
  ]);
  const env = {
    ...Object.fromEntries(proxies),
    PATH: process.env["PATH"],
    HOME: directory,
    YARN_ENABLE_TELEMETRY: "0",
    YARN_NODE_LINKER: "node-modules",
    // The test's registry has no certificate, and does not say how old a package is.
    YARN_NPM_MINIMAL_AGE_GATE: "0",
    YARN_NPM_REGISTRY_SERVER: `http://${HOST}`,
    YARN_UNSAFE_HTTP_WHITELIST: HOST,
  };
  await promisify(execFile)(process.execPath, [YARN, "install", "--no-immutable"], { cwd: directory, env });
  expect(await readFile(path.join(directory, "node_modules/alpha/package.json"), "utf8")).toContain("1.0.0");
  expect(new Set(dialled)).toEqual(new Set(["93.184.215.14:80"]));
});
