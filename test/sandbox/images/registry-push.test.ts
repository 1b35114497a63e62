/** Images of this machine in a registry on loopback, which checks what it gets. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { link, mkdir, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readRegistryLocation } from "../../../src/domain/environment/registry-reference.ts";
import { RegistryFailure } from "../../../src/sandbox/images/registry/client.ts";
import { RegistryImages } from "../../../src/sandbox/images/registry/images.ts";
import { ImageStore } from "../../../src/sandbox/images/store.ts";
import { digestOf, ImageRegistry } from "../../support/servers/image-registry.ts";

const isRoot = process.geteuid?.() === 0;
/** The block of a build, as the builder gives one to each project. */
const FIRST_UID = 300_065_536;
const REPOSITORY = "team/platform";

let home: string;
let registry: ImageRegistry;
let store: ImageStore;
let authFile: string;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "registry-push-"));
  chmodSync(home, 0o755);
  registry = await ImageRegistry.open();
  store = new ImageStore(join(home, "images"));
  authFile = join(home, "auth.json");
});
afterEach(() => {
  registry.close();
  rmSync(home, { recursive: true });
});

const images = (changes: Partial<ConstructorParameters<typeof RegistryImages>[0]> = {}) =>
  new RegistryImages({
    store,
    location: { origin: `http://${registry.host}`, repository: REPOSITORY },
    authFile: null,
    scratch: join(home, "scratch"),
    ...changes,
  });

const authorize = (username: string, password: string): void =>
  writeFileSync(
    authFile,
    JSON.stringify({
      auths: { [registry.host]: { auth: Buffer.from(`${username}:${password}`).toString("base64") } },
    }),
  );

/** An image with a directory, a file with two names, and a link. */
const addImage = (name: string, content = "hello\n") =>
  store.add(name, async (draft) => {
    const root = join(draft, "root");
    await mkdir(join(root, "srv"), { recursive: true });
    await writeFile(join(root, "srv/file"), content, { mode: 0o640 });
    await link(join(root, "srv/file"), join(root, "srv/same"));
    await symlink("/nowhere", join(root, "link"));
    if (isRoot) {
      for (const path of ["", "srv", "link"]) lchownSync(join(root, path), FIRST_UID, FIRST_UID);
      lchownSync(join(root, "srv/file"), FIRST_UID + 1000, FIRST_UID + 33);
    }
    const facts = { user: "1000", workdir: "/srv", bytes: content.length, files: 4 };
    return { digest: digestOf(Buffer.from(content)), env: { GREETING: "hello world" }, ...facts };
  });

const sent = () => registry.asked.filter((asked) => /^(?:PUT|POST)/.test(asked)).length;

const failureOf = (pushing: Promise<unknown>): Promise<RegistryFailure> =>
  pushing.then(
    () => Promise.reject(new Error("it was pushed")),
    (error: unknown) => (error instanceof RegistryFailure ? error : Promise.reject(error)),
  );

describe("an image of this machine", () => {
  it("is in the registry with its files, owners and variables, by its digest", async () => {
    await addImage("tools");
    const reference = (await images().ensure("tools")) ?? "";
    const [, digest = ""] = reference.split("@");
    expect(reference).toBe(`${registry.host}/${REPOSITORY}@${digest}`);
    const manifest = registry.manifests.get(`${REPOSITORY} ${digest}`) ?? Buffer.from("");
    expect(digestOf(manifest)).toBe(digest);
    const { config, layers } = JSON.parse(manifest.toString()) as {
      readonly config: { readonly digest: string };
      readonly layers: readonly [{ readonly digest: string; readonly size: number }];
    };
    const layer = registry.blobs.get(`${REPOSITORY} ${layers[0].digest}`) ?? Buffer.from("");
    expect(layer).toHaveLength(layers[0].size);
    const tar = gunzipSync(layer);
    const described = JSON.parse(String(registry.blobs.get(`${REPOSITORY} ${config.digest}`))) as unknown;
    expect(described).toMatchObject({
      os: "linux",
      config: { Env: ["GREETING=hello world"], User: "1000", WorkingDir: "/srv" },
      rootfs: { type: "layers", diff_ids: [digestOf(tar)] },
    });
    const listed = execFileSync("tar", ["--numeric-owner", "--list", "--verbose"], {
      input: tar,
      encoding: "utf8",
    });
    const owner = isRoot ? "1000/33" : "0/0";
    expect(listed).toMatch(new RegExp(`^-rw-r----- ${owner} +6 .* \\./srv/file$`, "m"));
    expect(listed).toMatch(/^hrw-r----- .* \.\/srv\/same link to \.\/srv\/file$/m);
    expect(listed).toMatch(/^lrwxrwxrwx 0\/0 .* \.\/link -> \/nowhere$/m);
    expect(readdirSync(join(home, "scratch"))).toEqual([]);
  });

  it("is sent once, also for two callers at once and for the next service", async () => {
    await addImage("tools");
    const one = images();
    const [first, second] = await Promise.all([one.ensure("tools"), one.ensure("tools")]);
    expect(first).toBe(second);
    const before = sent();
    expect(await one.ensure("tools")).toBe(first);
    expect(await images().ensure("tools")).toBe(first);
    expect(sent()).toBe(before);
    // A note about one registry does not count for another one.
    expect(registry.manifests.size).toBe(2);
    const elsewhere = images({ location: { origin: `http://${registry.host}`, repository: "other" } });
    expect(await elsewhere.ensure("tools")).toContain("/other@sha256:");
    expect(sent()).toBeGreaterThan(before);
  });

  it("is sent again if the registry has lost it, without the parts that it still has", async () => {
    await addImage("tools");
    const reference = await images().ensure("tools");
    registry.manifests.clear();
    registry.asked.length = 0;
    expect(await images().ensure("tools")).toBe(reference);
    // The same bytes again: only the manifest.
    expect(registry.asked.filter((asked) => /^(?:PUT|POST)/.test(asked))).toEqual([
      expect.stringContaining("PUT /v2/team/platform/manifests/sha256-"),
    ]);
  });

  it("is pushed after the unfinished files of a killed service were removed", async () => {
    await addImage("tools");
    mkdirSync(join(home, "scratch/push-killed"), { recursive: true });
    await images().sweep();
    expect(existsSync(join(home, "scratch"))).toBe(false);
    expect(await images().ensure("tools")).toContain("@sha256:");
  });

  it("is unknown if this machine does not have it", async () => {
    expect(await images().ensure("images.example.com/elsewhere:1")).toBeNull();
    expect(registry.asked).toEqual([]);
  });

  it("is removed where the registry allows that, and says so where it does not", async () => {
    await addImage("tools");
    expect(await images().forget("tools")).toBe("absent");
    await images().ensure("tools");
    expect(await images().forget("tools")).toBe("not_supported");
    registry.allowsRemoval = true;
    expect(await images().forget("tools")).toBe("removed");
    expect(await images().forget("tools")).toBe("absent");
    // A sandbox that needs it later has it.
    expect(await images().ensure("tools")).toContain("@sha256:");
  });
});

describe("a registry with credentials", () => {
  it.each(["basic", "token"] as const)("gets them (%s)", async (scheme) => {
    await addImage("tools");
    registry.access = { scheme, username: "pusher", password: "pa:ss", isPublic: true };
    authorize("pusher", "pa:ss");
    expect(await images({ authFile }).ensure("tools")).toContain("@sha256:");
    authorize("pusher", "wrong-canary");
    await addImage("more", "more\n");
    const failure = await failureOf(images({ authFile }).ensure("more"));
    expect([failure.problem, failure.message]).toEqual([
      "unauthorized",
      `${registry.host} does not accept the credentials for ${REPOSITORY} (401)`,
    ]);
    expect(failure.message).not.toContain("canary");
  });

  it.each([
    ["is missing", null, "which cannot be read (ENOENT)"],
    ["is no JSON", "secret-canary", "which is no file with credentials"],
    [
      "has another registry's",
      '{"auths":{"images.example.com":{"auth":"YTpi"}}}',
      "which has no username and password for",
    ],
  ])("names a file that %s", async (_what, content, why) => {
    await addImage("tools");
    if (content !== null) writeFileSync(authFile, content);
    const failure = await failureOf(images({ authFile }).ensure("tools"));
    expect(failure.message).toContain(`PLATFORM_IMAGE_REGISTRY_AUTH is ${authFile}, ${why}`);
    expect(failure.message).not.toContain("canary");
  });
});

const refusing = (status: number, code: string, message: string): void => {
  registry.answering = ({ method }, response) => {
    if (method !== "POST" && method !== "PUT") return false;
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ errors: [{ code, message }] }));
    return true;
  };
};

describe("a push that fails", () => {
  it.each([
    [403, "DENIED", "requested access is denied", "forbidden", "does not allow this in"],
    [413, "SIZE_INVALID", "too large", "full", "has no room for it in"],
    [403, "DENIED", "quota exceeded", "full", "has no room for it in"],
    [429, "TOOMANYREQUESTS", "slow down", "limited", "has been asked too often"],
    [500, "UNKNOWN", "broken", "unexpected", "answered 500, UNKNOWN: broken"],
  ] as const)("says why (%i, %s: %s)", async (status, code, message, problem, text) => {
    await addImage("tools");
    refusing(status, code, message);
    const failure = await failureOf(images().ensure("tools"));
    expect([failure.problem, failure.message]).toEqual([problem, expect.stringContaining(text)]);
    expect(readdirSync(join(home, "scratch"))).toEqual([]);
    // The next try succeeds.
    registry.answering = () => false;
    expect(await images().ensure("tools")).toContain("@sha256:");
  });

  it("names a registry that cannot be reached", async () => {
    await addImage("tools");
    registry.close();
    const failure = await failureOf(images().ensure("tools"));
    expect([failure.problem, failure.message]).toEqual([
      "unreachable",
      `the registry cannot be reached: 127.0.0.1 cannot be reached (${registry.host} refuses connections)`,
    ]);
  });

  it("does not trust a registry that stored something else", async () => {
    await addImage("tools");
    registry.answering = ({ method, url = "" }, response) => {
      if (method !== "PUT" || !url.includes("/manifests/")) return false;
      response.writeHead(201, { "docker-content-digest": digestOf(Buffer.from("other")) }).end();
      return true;
    };
    expect((await failureOf(images().ensure("tools"))).problem).toBe("unexpected");
  });
});

const read = (text: string) => {
  const result = readRegistryLocation(text);
  return result._tag === "Success" ? [result.success.origin, result.success.repository] : null;
};

it("reads the place that a setting names", () => {
  expect(read("images.example.com/team/platform")).toEqual(["https://images.example.com", "team/platform"]);
  expect(read("http://127.0.0.1:5000/p")).toEqual(["http://127.0.0.1:5000", "p"]);
  for (const text of [
    "",
    "images.example.com",
    "images.example.com/",
    "ftp://a/b",
    "a.example.com/Upper",
    "a.example.com/a:1",
    "u:p@a.example.com/b",
    "a.example.com/../b",
  ])
    expect(read(text), text).toBeNull();
});
