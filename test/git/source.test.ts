import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { checkRemote, checkSource } from "../../src/git/upstream/source.ts";
import { NetworkDouble } from "../support/network.ts";

describe("the source of an import", () => {
  const refused = [
    "ext::sh -c id",
    "file:///etc",
    "git://example.org/x.git",
    "ssh://git@example.org/x.git",
    "git@example.org:x.git",
    "-oProxyCommand=id",
    "--upload-pack=id",
    "http://example.org/x.git",
    "https://user:pw@127.0.0.1/x.git",
    "https://user@127.0.0.1/x.git",
    "https:///x.git",
    "https:/x.git",
    "https://",
    "https://127.0.0.1/x\n.git",
    "https://127.0.0.1/x.git?service=x",
    "https://127.0.0.1/x.git#x",
    "https://127.0.0.1/x.git",
    "https://127.1/x.git",
    "https://2130706433/x.git",
    "https://0x7f.1/x.git",
    "https://0/x.git",
    "https://localhost/x.git",
    "https://[::1]/x.git",
    "https://[::ffff:127.0.0.1]/x.git",
    "https://10.0.0.1/x.git",
    "https://169.254.169.254/latest",
    "https://[fd00:ec2::254]/x.git",
    "relative/path",
    "",
  ];

  it.live.each(refused)("is refused: %j [G03]", (text) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(checkSource(text, { allowHosts: [] }));
      expect(error.code).toBe("import_failed");
      expect(error.message).not.toContain("pw");
    }),
  );

  it.live("may be a public address over https, or a path that the caller has allowed [G03]", () =>
    Effect.gen(function* () {
      expect(yield* checkSource("https://8.8.8.8/a/b.git", { allowHosts: [] })).toEqual({
        protocol: "https",
        address: "https://8.8.8.8/a/b.git",
        config: {},
      });
      expect(yield* checkSource("/srv/git/x.git", { allowHosts: [] })).toEqual({
        protocol: "file",
        address: "/srv/git/x.git",
        config: {},
      });
    }),
  );

  it.live("may be an internal host over http if the operator allows it [G03]", () =>
    Effect.gen(function* () {
      const network = new NetworkDouble([["fd00::1"]]);
      const allowHosts = ["localhost"];
      expect(yield* checkSource("http://localhost:3000/x.git", { allowHosts, ...network })).toEqual({
        protocol: "http",
        address: "http://localhost:3000/x.git",
        config: { "http.curloptResolve": "localhost:3000:[fd00::1]" },
      });
    }),
  );
});

describe("a repository at a server with two addresses", () => {
  const open = Effect.acquireRelease(
    Effect.promise(async () => {
      const listening = createServer((socket) => void socket.resume()).listen(0, "127.0.0.1");
      await once(listening, "listening");
      return listening;
    }),
    (listening) => Effect.sync(() => listening.close()),
  );

  it.live.each(["https://git.example.org/x.git", "ssh://git@git.example.org/x.git"])(
    "is dialled at the one that answers: %s",
    (url) =>
      Effect.gen(function* () {
        const { port } = (yield* open).address() as AddressInfo;
        const network = new NetworkDouble([["2606:4700::1111", "93.184.216.34"]], (address) =>
          address.includes(":") ? "refuses" : port,
        );
        const remote = yield* checkRemote(url, { allowHosts: [], ...network });
        expect(remote.address).toBe("93.184.216.34");
        expect(remote).toMatchObject(
          "ssh" in remote
            ? { ssh: { host: "git.example.org", port: "22", address: "93.184.216.34" } }
            : { web: { config: { "http.curloptResolve": "git.example.org:443:93.184.216.34" } } },
        );
      }).pipe(Effect.scoped),
  );
});
