/** `platform runtimes` with an npm that unpacks what the test says. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import * as Effect from "effect/Effect";
import { afterEach, beforeEach, expect, it } from "vitest";
import {
  addRuntime,
  listRuntimes,
  removeRuntime,
} from "../../../src/installation/operator/runtimes/runtimes.ts";
import { GEMINI } from "../../../src/domain/runtimes/gemini.ts";
import { makeNodeHome } from "./node-home.ts";

const { packaged } = GEMINI;
if (packaged === null || packaged === "entry") throw new Error("gemini comes from npm");

let home: string;
let environment: Readonly<Record<string, string>>;
beforeEach(() => {
  ({ home, environment } = makeNodeHome());
});
afterEach(() => rmSync(home, { recursive: true }));

/** Puts an npm on the PATH that writes these packages, and the program if it should. */
const npm = (packages: object, hasProgram = true): void => {
  const program = `node_modules/${packaged.name}/bundle/gemini.js`;
  writeFileSync(
    path.join(home, "npm"),
    `#!/bin/sh
echo "$@" >> ${home}/calls
mkdir -p node_modules ${path.dirname(program)}
${hasProgram ? `echo program > ${program}` : ":"}
cat > node_modules/.package-lock.json <<'END'
${JSON.stringify({ packages })}
END
`,
    { mode: 0o755 },
  );
};

const OWN = `node_modules/${packaged.name}`;
const one = (integrity: string) => ({ [OWN]: { version: "1.2.3", integrity } });
const add = (integrity: string | null = null) =>
  Effect.runPromise(addRuntime(environment, { name: "gemini", version: "1.2.3", packaged, integrity }));
const listed = async () =>
  (await Effect.runPromise(listRuntimes(environment))).map(({ name, tree }) => [
    name,
    tree.version,
    tree.digest,
  ]);

it("adds exactly the version, without a script of a package, and lists it until it is removed", async () => {
  npm(one("sha512-a"));
  const { digest, root } = await add();
  expect(readFileSync(path.join(home, "calls"), "utf8")).toMatch(
    /^install .*--ignore-scripts .* -- @google\/gemini-cli@1\.2\.3\n$/,
  );
  expect(existsSync(path.join(root, "own", OWN, "bundle/gemini.js"))).toBe(true);
  expect(await listed()).toEqual([["gemini", "1.2.3", digest]]);
  expect(await Effect.runPromise(removeRuntime(environment, "gemini"))).toBe(true);
  expect(await Effect.runPromise(removeRuntime(environment, "gemini"))).toBe(false);
  expect(await listed()).toEqual([]);
});

it("has another digest if any package has another checksum", async () => {
  npm(one("sha512-a"));
  const first = await add();
  npm({ ...one("sha512-a"), "node_modules/zod": { version: "4.0.0", integrity: "sha512-b" } });
  const second = await add();
  expect(second.digest).not.toBe(first.digest);
  expect(second.packages).toBe(2);
});

it("takes nothing with another checksum than the one that is asked for, and nothing without any", async () => {
  npm(one("sha512-a"));
  await expect(add("sha512-b")).rejects.toThrow("has the checksum sha512-a, not sha512-b");
  npm({ [OWN]: { version: "1.2.3" } });
  await expect(add()).rejects.toThrow("names no checksum");
  expect(await listed()).toEqual([]);
});

it("takes no packages that lack the program for this machine", async () => {
  npm(one("sha512-a"), false);
  await expect(add()).rejects.toThrow(/lack own\/node_modules\/@google\/gemini-cli\/bundle\/gemini\.js/);
  expect(await listed()).toEqual([]);
});

it("says what npm said", async () => {
  writeFileSync(
    path.join(home, "npm"),
    "#!/bin/sh\necho 'npm error notarget No such version' >&2\nexit 1\n",
    {
      mode: 0o755,
    },
  );
  await expect(add()).rejects.toThrow("npm could not get @google/gemini-cli@1.2.3: notarget No such version");
});
