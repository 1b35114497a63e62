/** One node's package proxy behind egress proxies of several projects, and a registry on loopback. */
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { type IncomingMessage, type OutgoingHttpHeaders, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Egress, openEgress } from "../../../src/sandbox/egress.ts";
import type { EgressPolicy } from "../../../src/sandbox/egress-policy.ts";
import { type PackageOptions, PackageProxy } from "../../../src/sandbox/packages/proxy.ts";
import type { MeasuresApi } from "../../../src/telemetry/port.ts";
import { PackageRegistry } from "../../support/servers/package-registry.ts";

export const PROJECTS = [
  "5a3c1f20-0000-4000-8000-000000000001",
  "5a3c1f20-0000-4000-8000-000000000002",
] as const;

const nothing = () => undefined;

export interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
  /** False: it was broken off. */
  readonly isWhole: boolean;
}

export class PackageNode {
  readonly directory: string;
  readonly registry: PackageRegistry;
  /** Milliseconds since the epoch. */
  now = Date.UTC(2026, 0, 1);
  /** Counters, by name and labels. */
  readonly counts = new Map<string, number>();
  #proxy: PackageProxy | null = null;
  readonly #egress: Egress[] = [];

  private constructor(directory: string, registry: PackageRegistry) {
    this.directory = directory;
    this.registry = registry;
  }

  static async open(
    options: Partial<PackageOptions> = {},
    policy: Partial<EgressPolicy> = {},
  ): Promise<PackageNode> {
    const node = new PackageNode(
      await mkdtemp(join(tmpdir(), "platform-packages-")),
      await PackageRegistry.open(),
    );
    await node.start(options, policy);
    return node;
  }

  /** Opens the proxies. @param options where the node differs from one with a cache of 64 MiB */
  async start(options: Partial<PackageOptions> = {}, policy: Partial<EgressPolicy> = {}): Promise<void> {
    const count = ((name: string, labels: Readonly<Record<string, string>>, by = 1) => {
      const key = [name, ...Object.values(labels)].join(" ");
      this.counts.set(key, (this.counts.get(key) ?? 0) + by);
    }) as MeasuresApi["count"];
    this.#proxy = await PackageProxy.open({
      directory: this.store,
      bytes: 64 * 1024 ** 2,
      allowHosts: ["registry.test"],
      // Addresses of documentation stand for the public ones of hosts that are not dialled.
      network: {
        resolve: async (host) => [
          host === "inside.test" ? "10.0.0.1" : host === "registry.test" ? "127.0.0.1" : "192.0.2.1",
        ],
      },
      measures: { isOn: true, observe: nothing, count, set: nothing, beforeScrape: nothing },
      now: () => this.now,
      ...options,
    });
    for (const projectId of PROJECTS) {
      const egress = await openEgress(this.socketOf(projectId), {
        policy: {
          allow: ["registry.test"],
          secretNames: [],
          serviceUrl: null,
          llmUpstream: null,
          packages: {
            npm: `http://registry.test:${this.registry.port}`,
            pypi: `http://registry.test:${this.registry.port}/simple`,
            projectId,
          },
          ...policy,
        },
        packages: this.#proxy,
      });
      this.#egress.push(egress);
    }
  }

  async stop(): Promise<void> {
    for (const egress of this.#egress.splice(0)) egress.close();
    await this.#proxy?.close();
  }

  async close(): Promise<void> {
    await this.stop();
    this.registry.close();
    await rm(this.directory, { recursive: true });
  }

  get store(): string {
    return join(this.directory, "packages");
  }

  socketOf(projectId: string): string {
    return join(this.directory, `${projectId.slice(-1)}.sock`);
  }

  /** The files that are kept, in all scopes. */
  async kept(): Promise<string[]> {
    return (await readdir(this.store, { recursive: true }))
      .filter((name) => /sha(256|512)-/.test(name))
      .toSorted();
  }

  /** The address of an npm path as sandboxes have it. */
  npm(path: string): string {
    return `http://registry.test:${this.registry.port}${path}`;
  }

  /** One request to the package proxy alone, for a sandbox that may reach every host and port. */
  async getUnchecked(kind: "npm" | "pypi", path: string, headers: OutgoingHttpHeaders): Promise<void> {
    const source = new URL(`http://registry.test:${this.registry.port}${kind === "pypi" ? "/simple" : ""}`);
    const server = createServer((incoming, outgoing) => {
      const asked = { kind, source, projectId: PROJECTS[0], path, mayAsk: () => true };
      this.#proxy?.serve({ ...asked, incoming, outgoing }).catch(() => outgoing.destroy());
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const outgoing = request({ port: (server.address() as AddressInfo).port, path: "/", headers });
    outgoing.end();
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    await once(incoming.resume(), "close");
    server.close();
  }

  /** One request of a project's sandbox. */
  async get(
    url: string,
    { project = PROJECTS[0] as string, method = "GET", headers = {} as OutgoingHttpHeaders } = {},
  ): Promise<Answer> {
    const outgoing = request({ socketPath: this.socketOf(project), path: url, method, headers });
    outgoing.end();
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
    } catch {
      // It was broken off.
    }
    return {
      status: incoming.statusCode,
      headers: incoming.headers,
      body: Buffer.concat(chunks),
      isWhole: incoming.complete,
    };
  }
}
