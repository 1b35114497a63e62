/** What the tag of a base image stands for, asked of a registry on loopback. */
import { request } from "undici";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { taggedReference } from "../../../src/domain/environment/registry-reference.ts";
import { type AskRegistry, RegistryFailure } from "../../../src/sandbox/images/registry/client.ts";
import { lookUp, publicRegistries } from "../../../src/sandbox/images/registry/lookup.ts";
import { digestOf, ImageRegistry } from "../../support/servers/image-registry.ts";

let registry: ImageRegistry;
beforeEach(async () => {
  registry = await ImageRegistry.open();
});
afterEach(() => registry.close());

/** The registry stands for every host, without TLS. */
const dialled: AskRegistry = ({ url, path: _path, ...options }) =>
  request(new URL(`http://${registry.host}${url.pathname}${url.search}`), options as object);

const look = (
  reference = "images.example.com/team/base:1",
  egressAllow = ["images.example.com", "127.0.0.1"],
) => {
  const tag = taggedReference(reference);
  if (tag === null) throw new Error(`${reference} is no tag`);
  return lookUp(tag, { egressAllow, ask: dialled });
};

const failureOf = (looking: Promise<string>): Promise<RegistryFailure> =>
  looking.then(
    (digest) => Promise.reject(new Error(`found ${digest}`)),
    (error: unknown) => (error instanceof RegistryFailure ? error : Promise.reject(error)),
  );

describe("the digest of a tag", () => {
  it("is what the registry names, in one small request", async () => {
    const digest = registry.tag("team/base", "1", "{}");
    expect(await look()).toBe(digest);
    expect(registry.asked).toEqual(["HEAD /v2/team/base/manifests/1"]);
    const moved = registry.tag("team/base", "1", '{"moved":true}');
    expect([moved, await look()]).toEqual([await look(), moved]);
    expect(moved).not.toBe(digest);
  });

  it("is computed from the manifest if the registry does not name it", async () => {
    registry.tag("team/base", "1", "{}");
    registry.namesDigests = false;
    expect(await look()).toBe(digestOf(Buffer.from("{}")));
  });

  it("is given to everybody with a token that everybody gets", async () => {
    const digest = registry.tag("team/base", "1", "{}");
    registry.answering = (asked, response) => {
      if (asked.headers.authorization !== undefined) return false;
      const realm = 'Bearer realm="https://tokens.example.com/token",service="images"';
      response.writeHead(401, { "www-authenticate": realm }).end();
      return true;
    };
    expect(await look(undefined, ["images.example.com", "tokens.example.com"])).toBe(digest);
    expect(registry.asked[1]).toBe("GET /token?service=images&scope=repository%3Ateam%2Fbase%3Apull");
    // A build could not reach the server of tokens either.
    const failure = await failureOf(look());
    expect([failure.problem, failure.message]).toEqual([
      "unreachable",
      "the registry cannot be reached: tokens.example.com is not on the list of allowed hosts",
    ]);
  });
});

describe("a look that fails", () => {
  it("names a tag that the registry does not have", async () => {
    const failure = await failureOf(look());
    expect(failure.problem).toBe("missing");
    expect(failure.message).toBe("images.example.com does not have it in team/base (404)");
  });

  it("says that a registry wants credentials", async () => {
    registry.access = { scheme: "basic", username: "u", password: "p", isPublic: false };
    expect(await failureOf(look())).toMatchObject({
      problem: "unauthorized",
      message: "images.example.com asks for credentials for team/base (401)",
    });
  });

  it("sends no request for a token without TLS", async () => {
    registry.access = { scheme: "token", username: "u", password: "p", isPublic: true };
    expect(await failureOf(look())).toMatchObject({ problem: "unexpected" });
    expect(registry.asked).toHaveLength(1);
  });

  it("keeps the pause that the registry asks for", async () => {
    registry.answering = (_request, response) => {
      response.writeHead(429, { "retry-after": "7200" }).end();
      return true;
    };
    expect(await failureOf(look())).toMatchObject({ problem: "limited", waitMs: 7_200_000 });
  });

  it("reads no endless answer", async () => {
    registry.namesDigests = false;
    registry.tag("team/base", "1", "x".repeat(5 * 1024 * 1024));
    expect(await failureOf(look())).toMatchObject({ problem: "unexpected" });
  });

  it("asks no host that builds may not reach, and no private address", async () => {
    const failure = await failureOf(look("images.example.com/team/base:1", ["other.example.com"]));
    expect(failure.message).toContain("images.example.com is not on the list of allowed hosts");
    expect((await failureOf(look("images.example.com:5000/team/base:1"))).problem).toBe("unreachable");
    expect(registry.asked).toEqual([]);
    const tag = taggedReference("127.0.0.1/team/base:1");
    if (tag === null) throw new Error("no tag");
    const real = lookUp(tag, { egressAllow: ["127.0.0.1"], ask: publicRegistries() });
    expect((await failureOf(real)).message).toContain("127.0.0.1 has a private address");
  });
});
