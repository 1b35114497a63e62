/** A copy of the clone with the packages that `npm ci --omit=dev` leaves: it starts if it is built, and says so if it is not. */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Installation } from "../../support/service/process-service.ts";
import { TEST_MS } from "../../support/patience.ts";

const ROOT = path.resolve(import.meta.dirname, "../../..");
const SIMULATED = { PLATFORM_SANDBOX_PROVIDER: "simulated" };
const PARTS = ["daemon", "dashboard", "docs", "migrations", "src", "package.json", "package-lock.json"];

let installation: Installation;
let copy: string;
beforeAll(async () => {
  installation = await Installation.open();
  copy = path.join(installation.directory, "copy");
  for (const part of PARTS) cpSync(path.join(ROOT, part), path.join(copy, part), { recursive: true });
  const { packages } = JSON.parse(readFileSync(path.join(ROOT, "package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
  };
  for (const [place, { dev }] of Object.entries(packages)) {
    // Packages inside of others come with them.
    const isOwn = place.lastIndexOf("node_modules/") === 0;
    if (!isOwn || dev === true || !existsSync(path.join(ROOT, place))) continue;
    mkdirSync(path.dirname(path.join(copy, place)), { recursive: true });
    symlinkSync(path.join(ROOT, place), path.join(copy, place));
  }
});
afterAll(() => installation.close());

const start = () => installation.start(SIMULATED, { main: path.join(copy, "src/main.ts") });

it(
  "names npm run build, and serves the page after it",
  async () => {
    await expect(start()).rejects.toThrow(/\nThe service is not built, .* run `npm ci && npm run build`/);
    execFileSync(process.execPath, [path.join(ROOT, "scripts/build.ts")]);
    cpSync(path.join(ROOT, "build"), path.join(copy, "build"), { recursive: true });
    const life = await start();
    const page = await fetch(life.url);
    expect(page.status).toBe(200);
    expect(await page.text()).toMatch(/<script type="module" src="main-[\w-]+\.js">/);
    await life.end("SIGTERM");
  },
  TEST_MS,
);
