/** npm tarballs through the package proxy, and what never comes from it. */
import { createHash, randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { registryClient } from "../../../src/sandbox/packages/upstream.ts";
import { POLL } from "../../support/service/sessions/live-session.ts";
import { npmTarball } from "../../support/servers/package-files.ts";
import { PackageNode, PROJECTS } from "./support.ts";

let node: PackageNode;
beforeEach(async () => {
  node = await PackageNode.open();
});
afterEach(() => node.close());

const TARBALL = "/ms/-/ms-2.1.3.tgz";
const small = npmTarball("ms", "2.1.3");
/** Larger than what is held back. */
const large = npmTarball("ms", "2.1.3", randomBytes(400_000));

describe("an npm tarball", () => {
  it("is asked of the registry once, and then comes from the disk, for another project too", async () => {
    node.registry.addNpm("ms", "2.1.3", small);
    for (const project of PROJECTS) {
      const { status, body } = await node.get(node.npm(TARBALL), { project });
      expect([status, body.equals(small)]).toEqual([200, true]);
    }
    expect(node.registry.paths()).toEqual(["/ms/2.1.3", TARBALL]);
    expect(node.counts.get("package_requests_total npm hit")).toBe(1);
    await expect.poll(() => node.counts.get("package_bytes_total npm from_cache"), POLL).toBe(small.length);
  });

  it("comes from the disk after a restart, if the registry still describes it", async () => {
    node.registry.addNpm("ms", "2.1.3", large);
    await node.get(node.npm(TARBALL));
    await node.stop();
    await node.start();
    expect((await node.get(node.npm(TARBALL))).body.equals(large)).toBe(true);
    expect(node.registry.paths()).toEqual(["/ms/2.1.3", TARBALL, "/ms/2.1.3"]);
  });

  it("of a scope has one address in both spellings", async () => {
    const scoped = npmTarball("@acme/tool", "1.0.0-rc.1");
    node.registry.addNpm("@acme/tool", "1.0.0-rc.1", scoped);
    for (const slash of ["/", "%2f", "%2F"]) {
      const { body } = await node.get(node.npm(`/@acme${slash}tool/-/tool-1.0.0-rc.1.tgz`));
      expect(body.equals(scoped)).toBe(true);
    }
    expect(await node.kept()).toHaveLength(1);
  });

  it("that twenty sandboxes ask for at the same time is downloaded once", async () => {
    node.registry.addNpm("ms", "2.1.3", large);
    const begun = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    node.registry.answering = ({ url }, response) => {
      if (url !== TARBALL) return false;
      response.writeHead(200, { "content-length": large.length });
      response.write(large.subarray(0, 200_000));
      begun.resolve();
      void go.promise.then(() => response.end(large.subarray(200_000)));
      return true;
    };
    const answers = Array.from({ length: 20 }, (_, index) =>
      node.get(node.npm(TARBALL), { project: PROJECTS[index % 2] ?? "" }),
    );
    await begun.promise;
    go.resolve();
    for (const { body } of await Promise.all(answers)) expect(body.equals(large)).toBe(true);
    expect(node.registry.paths(/2\.1\.3$/)).toEqual([TARBALL]);
  });

  it("is asked for again when its description is an hour old, so a withdrawn version is not served", async () => {
    node.registry.addNpm("ms", "2.1.3", small);
    await node.get(node.npm(TARBALL));
    node.registry.addNpm("ms", "2.1.4", small);
    expect((await node.get(node.npm(TARBALL))).status).toBe(200);
    node.now += 3_600_001;
    expect((await node.get(node.npm(TARBALL))).status).toBe(404);
  });
});

describe("a registry that lies", () => {
  it("about a small file: it is not served and not kept [E19]", async () => {
    node.registry.addNpm("ms", "2.1.3", small);
    const other = npmTarball("ms", "2.1.3", Buffer.from("evil"));
    node.registry.answering = ({ url }, response) => {
      if (url !== TARBALL) return false;
      response.end(other);
      return true;
    };
    const { status, body } = await node.get(node.npm(TARBALL));
    expect(status).toBe(502);
    expect(body.toString()).toContain("does not have the checksum of its own description");
    expect(await node.kept()).toEqual([]);
    // Another answer is right, and is kept.
    node.registry.answering = () => false;
    expect((await node.get(node.npm(TARBALL))).body.equals(small)).toBe(true);
  });

  it("about a large file: the answer is cut before its end, and nothing is kept [E19]", async () => {
    node.registry.addNpm("ms", "2.1.3", large);
    const other = Buffer.from(large);
    other[100] = (other[100] ?? 0) ^ 1;
    node.registry.answering = ({ url }, response) => {
      if (url !== TARBALL) return false;
      response.end(other);
      return true;
    };
    const { isWhole, body } = await node.get(node.npm(TARBALL));
    expect(isWhole).toBe(false);
    expect(body.length).toBeLessThanOrEqual(large.length - 64 * 1024);
    expect(await node.kept()).toEqual([]);
    expect(node.counts.get("package_requests_total npm failed")).toBe(1);
  });

  it.each([200_000, 10])("about the length, after %i bytes: nothing is kept [E19]", async (bytes) => {
    node.registry.addNpm("ms", "2.1.3", large);
    node.registry.answering = ({ url }, response) => {
      if (url !== TARBALL) return false;
      response.writeHead(200, { "content-length": large.length });
      response.write(large.subarray(0, bytes), () => response.destroy());
      return true;
    };
    const { isWhole, status } = await node.get(node.npm(TARBALL));
    expect(bytes === 10 ? status : isWhole).toBe(bytes === 10 ? 502 : false);
    expect(await node.kept()).toEqual([]);
  });

  it("by the description of another version or package: the file passes, and is not kept", async () => {
    node.registry.addNpm("ms", "2.1.3", small);
    for (const other of [{ version: "2.1.2" }, { name: "sm" }]) {
      const integrity = `sha512-${createHash("sha512").update(small).digest("base64")}`;
      const dist = { tarball: node.npm(TARBALL), integrity };
      node.registry.answering = ({ url }, response) => {
        if (url !== "/ms/2.1.3") return false;
        response.end(JSON.stringify({ name: "ms", version: "2.1.3", ...other, dist }));
        return true;
      };
      // oxlint-disable-next-line no-await-in-loop -- one description after the other
      expect((await node.get(node.npm(TARBALL))).body.equals(small)).toBe(true);
      // oxlint-disable-next-line no-await-in-loop -- as above
      expect(await node.kept()).toEqual([]);
    }
  });

  it("by leaving the description out: the file passes, and is not kept", async () => {
    node.registry.addNpm("ms", "2.1.3", small);
    node.registry.answering = ({ url }, response) => {
      if (url !== "/ms/2.1.3") return false;
      response.end(
        JSON.stringify({ name: "ms", version: "2.1.3", dist: { tarball: node.npm(TARBALL), shasum: "1" } }),
      );
      return true;
    };
    expect((await node.get(node.npm(TARBALL))).body.equals(small)).toBe(true);
    expect(await node.kept()).toEqual([]);
  });

  it("with an endless description costs a megabyte [E20]", async () => {
    node.registry.addNpm("ms", "2.1.3", small);
    let sent = 0;
    const left = Promise.withResolvers<void>();
    node.registry.answering = ({ url }, response) => {
      if (url !== "/ms/2.1.3") return false;
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, " "))) sent += 65_536;
      };
      response.on("drain", more).on("close", () => left.resolve());
      more();
      return true;
    };
    expect((await node.get(node.npm(TARBALL))).body.equals(small)).toBe(true);
    await left.promise;
    expect(sent).toBeLessThan(8 * 1024 ** 2);
  });

  it("with a compressed document: it passes as it is, and is not unpacked [E20]", async () => {
    const bomb = gzipSync(Buffer.alloc(20 * 1024 ** 2));
    node.registry.answering = (_request, response) => {
      response.writeHead(200, { "content-encoding": "gzip" }).end(bomb);
      return true;
    };
    expect((await node.get(node.npm("/ms"))).body.equals(bomb)).toBe(true);
    expect((await node.get(node.npm(TARBALL))).body.equals(bomb)).toBe(true);
    expect(await node.kept()).toEqual([]);
  });
});

/** The registry redirects the tarball. */
const redirect = (location: string) => {
  node.registry.addNpm("ms", "2.1.3", small);
  node.registry.answering = ({ url }, response) => {
    if (url !== TARBALL) return false;
    response.writeHead(302, { location }).end();
    return true;
  };
};

describe("a redirect of the registry", () => {
  it.each([
    [
      "a host that is not allowed",
      "https://elsewhere.test/ms.tgz",
      "redirects to elsewhere.test, which is not allowed",
    ],
    ["a private address", "https://10.0.0.1/ms.tgz", "redirects to 10.0.0.1, which is not allowed"],
    [
      "an allowed host that is private",
      "https://inside.test/ms.tgz",
      "inside.test has a private address (10.0.0.1)",
    ],
    [
      "this service",
      "http://platform.internal/v1/me",
      "redirects to platform.internal, which is not allowed",
    ],
    ["plain http", "http://inside.test/ms.tgz", "inside.test is not reached, because its URL is not https"],
  ])("to %s is refused [E21]", async (_name, location, reason) => {
    await node.stop();
    await node.start({}, { allow: ["registry.test", "inside.test"] });
    redirect(location);
    const { status, body } = await node.get(node.npm(TARBALL));
    expect(status).toBe(403);
    expect(body.toString()).toContain(reason);
  });

  it("in a circle ends [E21]", async () => {
    redirect(TARBALL);
    expect((await node.get(node.npm(TARBALL))).status).toBe(502);
    expect(node.registry.paths(/2\.1\.3$/)).toHaveLength(6);
  });

  it("within the registry is followed", async () => {
    redirect("/elsewhere/ms.tgz");
    const { answering } = node.registry;
    node.registry.answering = (request, response) => {
      if (request.url !== "/elsewhere/ms.tgz") return answering(request, response);
      response.end(small);
      return true;
    };
    expect((await node.get(node.npm(TARBALL))).body.equals(small)).toBe(true);
    expect(await node.kept()).toHaveLength(1);
  });
});

describe("a request to the npm registry", () => {
  it.each([
    "/@acme%2ftool%2fmore/-/more-1.0.0.tgz",
    "/ms/-/other-2.1.3.tgz",
    "/drafts/-/drafts-..tgz",
    "/ms/-/ms-2.1.3.tgz?token=1",
    "//ms/-/ms-2.1.3.tgz",
  ])("for %s reaches the registry as it was written, and nothing is kept [E22]", async (path) => {
    node.registry.addNpm("ms", "2.1.3", small);
    await node.get(node.npm(path));
    expect(node.registry.paths()).toEqual([path]);
    expect(await node.kept()).toEqual([]);
  });

  it.each([
    ["GET", "/npm/ms/-/../../../secret"],
    ["GET", "/npm/ms%2f..%2f..%2fx"],
    ["GET", "/npm/%2e%2e/admin"],
    ["GET", "/admin/users"],
    ["GET", "/"],
    ["DELETE", "/npm/ms"],
  ])("%s %s is for another part of the registry's host, which stays closed [E22]", async (method, path) => {
    await node.stop();
    const npm = node.npm("/npm");
    await node.start({}, { packages: { npm, pypi: null, projectId: PROJECTS[0] } });
    const { status } = await node.get(node.npm(path), { method });
    expect([status, node.registry.asked]).toEqual([403, []]);
    await node.get(node.npm("/npm/ms"));
    expect(node.registry.paths()).toEqual(["/npm/ms"]);
  });

  it("passes with its method and credentials, for the registry's host whatever its Host header says [E22]", async () => {
    node.registry.answering = (_request, response) => {
      response.writeHead(201, { "x-kept": "1" }).end("made");
      return true;
    };
    const { status, headers, body } = await node.get(node.npm("/@acme%2ftool"), {
      method: "PUT",
      headers: { authorization: "Bearer t", "content-length": 0, host: "elsewhere.test" },
    });
    expect([status, headers["x-kept"], body.toString()]).toEqual([201, "1", "made"]);
    expect(node.registry.asked).toMatchObject([
      {
        method: "PUT",
        path: "/@acme%2ftool",
        authorization: "Bearer t",
        host: `registry.test:${node.registry.port}`,
      },
    ]);
  });

  it("of a sandbox that may not reach the registry's host is refused", async () => {
    await node.stop();
    await node.start({}, { allow: ["elsewhere.test"] });
    const { status } = await node.get(node.npm("/ms"));
    expect([status, node.registry.asked]).toEqual([403, []]);
  });

  it("for part of a file passes, and is not kept", async () => {
    node.registry.addNpm("ms", "2.1.3", small);
    await node.get(node.npm(TARBALL), { headers: { range: "bytes=0-10" } });
    expect([node.registry.paths(), await node.kept()]).toEqual([[TARBALL], []]);
  });

  it("finds a registry with a private address only if the operator allows its host [E21]", async () => {
    await node.stop();
    await node.start({ allowHosts: [] });
    expect((await node.get(node.npm("/ms"))).status).toBe(403);
    expect(node.registry.asked).toEqual([]);
  });
});

describe("a private package", () => {
  const headers = { authorization: "Bearer secret" };
  beforeEach(() => {
    node.registry.addNpm("ms", "2.1.3", small);
    node.registry.token = "secret";
  });

  it("is not served to another project, whatever it sends [E23]", async () => {
    expect((await node.get(node.npm(TARBALL), { headers })).body.equals(small)).toBe(true);
    expect(await node.kept()).toEqual([expect.stringMatching(`^${PROJECTS[0]}/`)]);
    const [, project] = PROJECTS;
    for (const others of [{}, { authorization: "Bearer wrong" }, { cookie: "a=b" }]) {
      const { status, body } = await node.get(node.npm(TARBALL), { project, headers: others });
      expect([status, body.includes(small)]).toEqual([401, false]);
    }
  });

  it("comes from the project's own files with the same credentials, and never without", async () => {
    await node.get(node.npm(TARBALL), { headers });
    const before = node.registry.asked.length;
    expect((await node.get(node.npm(TARBALL), { headers })).body.equals(small)).toBe(true);
    expect(node.registry.asked).toHaveLength(before);
    expect((await node.get(node.npm(TARBALL))).status).toBe(401);
  });

  it("is asked for again with other credentials, which the registry judges [E23]", async () => {
    await node.get(node.npm(TARBALL), { headers });
    const { status } = await node.get(node.npm(TARBALL), { headers: { authorization: "Bearer old" } });
    expect(status).toBe(401);
  });

  it("is redirected without its credentials to another origin [E23]", async () => {
    const hosts = ["registry.test", "other.test"];
    const upstream = registryClient({
      allowHosts: hosts,
      network: { resolve: async () => ["127.0.0.1"] },
    });
    const { port } = node.registry;
    node.registry.answering = ({ url }, response) => {
      if (url === "/here") response.writeHead(302, { location: "/near" }).end();
      else if (url === "/near") response.writeHead(302, { location: `http://other.test:${port}/far` }).end();
      else response.end();
      return true;
    };
    const cookie = "a=b";
    const asked = {
      url: new URL(`http://registry.test:${port}/here`),
      headers: { ...headers, cookie },
    };
    await (await upstream.follow(asked, { limit: 2, mayAsk: () => true })).body.dump();
    await upstream.close();
    expect(node.registry.asked.map(({ path, authorization }) => [path, authorization])).toEqual([
      ["/here", "Bearer secret"],
      ["/near", "Bearer secret"],
      ["/far", undefined],
    ]);
  });
});
