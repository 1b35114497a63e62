/** Python packages through the package proxy. */
import { randomBytes } from "node:crypto";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PYPI_INDEX } from "../../../src/domain/environment/packages.ts";
import { POLL } from "../../support/service/sessions/live-session.ts";
import { sha256, wheel } from "../../support/servers/package-files.ts";
import { PackageNode, PROJECTS } from "./support.ts";

let node: PackageNode;
beforeEach(async () => {
  node = await PackageNode.open({ pageBytes: 100_000 });
});
afterEach(() => node.close());

const FILE = "six-1.0.0-py3-none-any.whl";
const six = wheel("six", "1.0.0");
const HTML = { accept: "text/html" };
const JSON_PAGE = { accept: "application/vnd.pypi.simple.v1+json" };

/** The link of a project's first file on its index page. */
const linkOf = async (project: string, headers = HTML): Promise<string> => {
  const { body } = await node.get(`${PYPI_INDEX}${project}/`, { headers });
  return /(?:href="|"url":")([^"]*)"/.exec(body.toString())?.[1] ?? "";
};
const addressOf = (host: string, hex = sha256(six)): string =>
  `http://pypi.platform.internal/files/${hex}/https/${host}/wheels/${FILE}`;
const here = (hex = sha256(six)): string =>
  `http://pypi.platform.internal/files/${hex}/http/registry.test:${node.registry.port}/wheels/${FILE}`;

describe("a Python package", () => {
  it.each([
    ["HTML", HTML],
    ["JSON", JSON_PAGE],
  ])("is downloaded once, by the links of an index in %s", async (_name, headers) => {
    node.registry.addWheel(FILE, six);
    for (const project of PROJECTS) {
      const link = await linkOf("six", headers);
      expect(link.split("#")[0]).toBe(here());
      // pip writes the colon before the port as an escape.
      const asked = (link.split("#")[0] ?? "").replace("registry.test:", "registry.test%3A");
      expect((await node.get(asked, { project })).body.equals(six)).toBe(true);
    }
    expect(node.registry.paths()).toEqual(["/simple/six/", `/wheels/${FILE}`, "/simple/six/"]);
  });

  it("may have the name of one of our own paths [E22]", async () => {
    for (const name of ["files", "simple", "drafts"]) {
      node.registry.addWheel(`${name}-1.0.0-py3-none-any.whl`, wheel(name, "1.0.0"));
      const { body } = await node.get((await linkOf(name)).split("#")[0] ?? "");
      expect(body.equals(wheel(name, "1.0.0"))).toBe(true);
    }
  });

  it("is not served and not kept if it has another checksum than its link [E19]", async () => {
    node.registry.addWheel(FILE, six);
    const { status } = await node.get(here(sha256(Buffer.from("other"))));
    expect([status, await node.kept()]).toEqual([502, []]);
  });

  it("that is claimed to have another one's checksum disturbs no request for that one [E19]", async () => {
    node.registry.addWheel(FILE, six);
    const slow = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    node.registry.answering = ({ url }, response) => {
      if (url !== "/wheels/slow.whl") return false;
      begun.resolve();
      void slow.promise.then(() => response.end("evil"));
      return true;
    };
    const claimed = node.get(here().replace(FILE, "slow.whl"));
    await begun.promise;
    expect((await node.get(here(), { project: PROJECTS[1] })).body.equals(six)).toBe(true);
    slow.resolve();
    expect((await claimed).status).toBe(502);
    expect((await node.get(here(), { project: PROJECTS[1] })).body.equals(six)).toBe(true);
  });

  it("has its separate metadata from the registry", async () => {
    node.registry.answering = ({ url }, response) => {
      if (url?.endsWith(".metadata") !== true) return false;
      response.end("Name: six");
      return true;
    };
    expect((await node.get(`${here()}.metadata`)).body.toString()).toBe("Name: six");
    expect(await node.kept()).toEqual([]);
  });
});

describe("a file on another host than the index", () => {
  it.each([
    ["that is not allowed", () => addressOf("elsewhere.test"), "elsewhere.test is not on the list"],
    ["that is this service", () => addressOf("platform.internal"), "platform.internal is not on the list"],
    ["that is loopback", () => addressOf("127.0.0.1"), "127.0.0.1 is not on the list"],
    [
      "that is allowed and private",
      () => addressOf("inside.test"),
      "inside.test has a private address (10.0.0.1)",
    ],
  ])("%s is refused [E21]", async (_name, address, reason) => {
    await node.stop();
    await node.start({}, { allow: ["registry.test", "inside.test"] });
    for (const url of [address(), `${address()}.metadata`]) {
      const { status, body } = await node.get(url);
      expect([status, body.toString()]).toEqual([403, expect.stringContaining(reason)]);
    }
  });

  it("does not get the credentials for the index [E23]", async () => {
    await node.stop();
    await node.start({
      allowHosts: ["registry.test", "files.test"],
      network: { resolve: async () => ["127.0.0.1"] },
    });
    node.registry.addWheel(FILE, six);
    const headers = { authorization: "Basic c2VjcmV0", cookie: "a=b" };
    const { port } = node.registry;
    for (const host of ["registry.test", "files.test"]) {
      for (const suffix of ["", ".metadata"])
        await node.getUnchecked(
          "pypi",
          `${new URL(here()).pathname.replace("registry.test", host)}${suffix}`,
          headers,
        );
    }
    expect(node.registry.asked.map(({ host, authorization }) => [host, authorization])).toEqual([
      [`registry.test:${port}`, "Basic c2VjcmV0"],
      [`registry.test:${port}`, "Basic c2VjcmV0"],
      [`files.test:${port}`, undefined],
      [`files.test:${port}`, undefined],
    ]);
    // Only what came without credentials is for all projects.
    const kept = (await node.kept()).map((name) => name.split("/")[0]);
    expect(kept).toEqual([PROJECTS[0], "public"]);
  });
});

/** The registry answers each request so. */
const answer = (body: Buffer | string, headers: Record<string, string>): void => {
  node.registry.answering = (_request, response) => {
    response.writeHead(200, headers).end(body);
    return true;
  };
};
const page = () => node.get(`${PYPI_INDEX}six/`, { headers: HTML });

describe("an index page", () => {
  it("is asked for each time, with the tag of the sandbox's copy", async () => {
    node.registry.answering = ({ headers }, response) => {
      response
        .writeHead(headers["if-none-match"] === '"1"' ? 304 : 200, {
          etag: '"1"',
          "content-type": "text/html",
        })
        .end();
      return true;
    };
    expect((await page()).headers.etag).toBe('"1"');
    const { status } = await node.get(`${PYPI_INDEX}six/`, { headers: { ...HTML, "if-none-match": '"1"' } });
    expect([status, node.registry.asked.length]).toEqual([304, 2]);
  });

  it("is unpacked if it is compressed, but not to any size [E20]", async () => {
    const text = `<a href="${FILE}#sha256=${sha256(six)}">six</a>`;
    answer(gzipSync(text), { "content-type": "text/html", "content-encoding": "gzip" });
    expect((await page()).body.toString()).toContain("/files/");
    for (const bomb of [gzipSync(Buffer.alloc(50 * 1024 ** 2, " ")), randomBytes(100_001)]) {
      answer(bomb, { "content-type": "text/html", "content-encoding": "gzip" });
      const { status, body } = await page();
      expect([status, body.toString()]).toEqual([502, expect.stringContaining("more than 100000 bytes")]);
    }
  });

  it("keeps links that cannot come from the cache, as absolute ones", async () => {
    const links = [
      "a.whl",
      "b.whl#md5=1",
      `c.whl?token=1#sha256=${sha256(six)}`,
      "https://other.test/d.whl",
      "ftp://x/e",
    ];
    answer(links.map((link) => `<a href='${link}'>x</a>`).join(""), { "content-type": "text/html" });
    const base = `http://registry.test:${node.registry.port}/simple/six/`;
    const found = [...(await page()).body.toString().matchAll(/href="([^"]*)"/g)].map(([, link]) => link);
    expect(found).toEqual([
      `${base}a.whl`,
      `${base}b.whl#md5=1`,
      `${base}c.whl?token=1#sha256=${sha256(six)}`,
      "https://other.test/d.whl",
      "ftp://x/e",
    ]);
  });

  it.each([
    ["that is no page", "x", "application/zip"],
    ["that is no JSON", "{", "application/vnd.pypi.simple.v1+json"],
    ["with a base of its own", "<base href='/x'><a href='y'>", "text/html"],
  ])("%s is refused", async (_name, body, type) => {
    answer(body, { "content-type": type });
    expect((await page()).status).toBe(502);
  });

  it("that is redirected within the index stays within ours", async () => {
    node.registry.answering = (_request, response) => {
      response.writeHead(301, { location: "/simple/six/" }).end();
      return true;
    };
    expect((await node.get(`${PYPI_INDEX}Six/`)).headers.location).toBe(`${PYPI_INDEX}six/`);
  });

  it("is read four times at once for a project, and others do not wait for it [E20]", async () => {
    const [one, other] = PROJECTS;
    node.registry.addWheel(FILE, six);
    const stuck = Promise.withResolvers<void>();
    const { registry } = node;
    registry.answering = ({ url }, response) => {
      if (url !== "/simple/slow/") return false;
      void stuck.promise.then(() => response.end());
      return true;
    };
    const waiting = Array.from({ length: 20 }, () => node.get(`${PYPI_INDEX}slow/`, { project: one }));
    // Four of a project at the same time.
    await expect.poll(() => registry.paths().length, POLL).toBe(4);
    expect((await node.get(`${PYPI_INDEX}six/`, { project: other })).status).toBe(200);
    expect(registry.paths(/six/)).toHaveLength(4);
    stuck.resolve();
    await Promise.all(waiting);
  });
});

describe("another address of the index", () => {
  it.each([
    "/",
    "/simple/../x/",
    "/simple/a%2fb/",
    "/simple/../",
    "/files/x/https/registry.test/a",
    `/files/${"A".repeat(64)}/https/registry.test/a`,
    `/files/${"a".repeat(64)}/ftp/registry.test/a`,
    `/files/${"a".repeat(64)}/https/user@registry.test/a`,
    `/files/${"a".repeat(64)}/https/registry.test/a?b`,
  ])("like %s is refused, and the registry is not asked [E22]", async (path) => {
    const { status } = await node.get(`http://pypi.platform.internal${path}`);
    expect([status, node.registry.asked]).toEqual([400, []]);
  });

  it.each(["/admin", "/wheels/..%2fx.whl", "/simple/", "/x.whl/admin"])(
    "that claims to be the file %s of the index's host is refused [E22]",
    async (path) => {
      const host = `registry.test:${node.registry.port}`;
      const address = `http://pypi.platform.internal/files/${"a".repeat(64)}/http/${host}${path}`;
      for (const headers of [{}, { range: "bytes=0-9" }])
        expect((await node.get(address, { headers })).status).toBe(403);
      expect(node.registry.asked).toEqual([]);
    },
  );

  it("is only read [E22]", async () => {
    const { status } = await node.get(`${PYPI_INDEX}six/`, { method: "POST" });
    expect([status, node.registry.asked]).toEqual([403, []]);
  });
});
