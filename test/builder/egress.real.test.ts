/** The hosts that a build reaches: only allowed public hosts, and only through the egress proxy. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { BASE, missing, openRealBuilder, type RealBuilder } from "./real-builder.ts";
import { deepTest, onlyDeep } from "../support/vitest/rings.ts";

/** A public address that the test dials itself. */
const PUBLIC = "93.184.216.34";
const ADDRESSES: Readonly<Record<string, string>> = {
  "allowed.example": PUBLIC,
  "private.example": "10.1.2.3",
  "loopback.example": "127.0.0.1",
  "platform.example": "93.184.216.40",
  "balancer.example": "93.184.216.40",
};
const ALLOW = ["allowed.example", "private.example", "loopback.example", "unknown.example"];

describe.skipIf(missing !== "")(`egress of builds with buildah ${missing}`, () => {
  let real: RealBuilder;
  let server: Server;
  let port = 0;
  /** Requests that reached the server, which stands for every host: those of the allowed name and others. */
  const reached: string[] = [];

  beforeAll(async () => {
    server = createServer((incoming, outgoing) => {
      reached.push(`${incoming.headers.host ?? ""}${incoming.url ?? ""}`);
      outgoing.end("served\n");
    });
    // On all addresses of this machine: whatever gets out of the sandbox arrives.
    server.listen(0);
    await once(server, "listening");
    ({ port } = server.address() as AddressInfo);
    real = await openRealBuilder({
      serviceHosts: ["platform.example"],
      network: {
        resolve: async (host) => {
          const address = ADDRESSES[host];
          if (address === undefined) throw new Error("unknown host");
          return [address];
        },
        connect: () => connect({ port, host: "127.0.0.1", allowHalfOpen: true }),
      },
    });
  });
  beforeEach(() => void reached.splice(0));
  afterAll(async () => {
    await real.close();
    server.close();
  });

  it("reaches an allowed host through the proxy [E09]", async () => {
    const { failure, log } = await real.build(
      {
        Dockerfile: `${BASE}RUN wget -q -O - http://allowed.example/tool\nADD http://allowed.example/file /\n`,
      },
      { egressAllow: ALLOW },
    );
    expect(failure).toBeNull();
    expect(log).toContain("served");
    expect(reached).toEqual(expect.arrayContaining(["allowed.example/tool", "allowed.example/file"]));
  });

  it("refuses and names loopback, metadata, private, internal and unlisted hosts [E09]", async () => {
    const hosts = [
      "169.254.169.254",
      "metadata.google.internal",
      "10.0.0.1",
      "[::1]",
      "private.example",
      "loopback.example",
      "platform.internal",
      "llm.platform.internal",
      "unlisted.example",
    ];
    const probes = hosts.map((host) => `wget -q -O - http://${host}/ || true`);
    // Loopback is excepted from the proxy: in the build's own network nothing listens there.
    const direct = [`127.0.0.1:${port}`, `localhost:${port}`, `${PUBLIC}:80`];
    const { failure, log } = await real.build(
      {
        Dockerfile: `${BASE}RUN ${probes.join("; ")}
RUN export no_proxy= NO_PROXY=; wget -q -O - http://127.0.0.1/ || true; wget -q -O - http://localhost/ || true
RUN unset http_proxy HTTP_PROXY; ${direct.map((to) => `wget -q -O - http://${to}/ || true`).join("; ")}
RUN ls /sys/class/net 2>/dev/null; cat /proc/net/dev
`,
      },
      { egressAllow: ALLOW },
    );
    expect(failure).toBeNull();
    for (const host of [...hosts, "127.0.0.1", "localhost"])
      expect(log).toContain(`egress proxy: refused ${host}:`);
    expect(log).not.toContain("served");
    expect(log).not.toContain("eth0");
    expect(reached).toEqual([]);
  });

  it("sends nothing to its own service, by its name or its address, whatever the list opens [X25]", async () => {
    const hosts = ["platform.example", "balancer.example", "93.184.216.40"];
    const steps = hosts.map((host) => `wget -q -O - http://${host}/v1/webhooks/projects/p/hook || true`);
    const { failure, log } = await real.build(
      { Dockerfile: `${BASE}RUN ${steps.join("; ")}\n` },
      { egressAllow: ["*"] },
    );
    expect(failure).toBeNull();
    for (const host of hosts) expect(log).toContain(`egress proxy: refused ${host}:`);
    expect(reached).toEqual([]);
  });

  onlyDeep(() => {
    it.each([
      ["a step", `${BASE}RUN wget -q -O /x http://unlisted.example/x\n`, 3, "unlisted.example"],
      ["an ADD", `${BASE}ADD http://10.0.0.1/x /\n`, 3, "10.0.0.1"],
      ["a base image", "FROM unlisted.example/image:1\n", 1, "unlisted.example"],
    ])(
      "fails %s that needs a refused host with the host's name [E09]",
      async (_what, Dockerfile, line, host) => {
        const { failure } = await real.build({ Dockerfile }, { egressAllow: ALLOW });
        expect(failure).toMatchObject({ code: "egress_denied", line, host });
        expect(reached).toEqual([]);
      },
    );
  });

  deepTest("names a base image that no registry has", async () => {
    const { failure } = await real.build(
      { Dockerfile: "# first\nFROM --platform=linux/amd64 unknown.example/team/image:1\nRUN true\n" },
      { egressAllow: ALLOW },
    );
    expect(failure).toMatchObject({
      code: "base_unavailable",
      reference: "unknown.example/team/image:1",
      line: 2,
    });
  });
});
