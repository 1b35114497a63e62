/**
 * The package cache while its service dies: a real service is killed in the middle of a download. The sandbox that asked lives on, and
 * its next try succeeds.
 */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { npmTarball, sha256 } from "../../support/servers/package-files.ts";
import { PackageRegistry } from "../../support/servers/package-registry.ts";
import { LiveSession } from "../../support/service/sessions/live-session.ts";
import { Installation, type Life } from "../../support/service/process-service.ts";
import { TEST_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";

const hasNpm = spawnSync("npm", ["--version"], { env: { PATH: "/usr/bin:/bin" } }).status === 0;
const HOST = "127.0.0.2";

/** npm gives up at once, and the script asks again until it succeeds. */
const SETUP = `
mkdir /tmp/app
cd /tmp/app
echo '{"dependencies": {"alpha": "1.0.0"}}' > package.json
until npm install --no-audit --no-fund --fetch-retries 0 --fetch-timeout 20000; do echo again; sleep 1; done
node -p "'installed ' + require('alpha')"
`;

/** The kept files below a directory, without what is under way. */
const filesIn = (directory: string): readonly string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));

describe.skipIf(!sandboxesStartHere || !hasNpm)(
  `the package cache of a service that is killed ${hasNpm ? "" : "needs npm in /usr/bin"}`,
  () => {
    const tarball = npmTarball("alpha", "1.0.0", randomBytes(3_000_000));
    let registry: PackageRegistry;
    let installation: Installation;
    let life: Life;
    const settings = () => ({
      PLATFORM_EGRESS_ALLOW: HOST,
      PLATFORM_PACKAGE_CACHE_NPM: `http://${HOST}:${registry.port}`,
    });
    beforeAll(async () => {
      registry = await PackageRegistry.open(HOST);
      registry.publicUrl = `https://${HOST}:${registry.port}`;
      registry.addNpm("alpha", "1.0.0", tarball);
      installation = await Installation.open();
      life = await installation.start(settings());
    }, TEST_MS);
    afterAll(async () => {
      await life?.end("SIGTERM");
      await installation?.close();
      registry?.close();
    }, TEST_MS);

    it(
      "serves no part of the file after its restart, and the client succeeds on a later try",
      async () => {
        const half = Promise.withResolvers<void>();
        let isHalf = true;
        registry.answering = ({ url = "" }, response) => {
          if (!isHalf || !url.endsWith(".tgz")) return false;
          response.writeHead(200, { "content-length": tarball.length });
          // The rest never comes.
          response.write(tarball.subarray(0, 2_000_000), () => half.resolve());
          return true;
        };
        const repository = await installation.repository(`[environment]\nsetup = '''${SETUP}'''\n`);
        const session = await LiveSession.startIn(life, await life.project(repository), {
          initial_prompt: "run: true",
        });
        await half.promise;
        const packages = path.join(installation.dataDir, "packages");
        // A part of the file is on the disk.
        await expect
          .poll(() => filesIn(packages).some((file) => readFileSync(file).length > 500_000), {
            timeout: TEST_MS,
            interval: 50,
          })
          .toBe(true);
        await life.end("SIGKILL");
        isHalf = false;
        life = await installation.start(settings());
        const after = session.at(life);
        await expect
          .poll(() => life.text(`${session.path}/logs?follow=0`), { timeout: TEST_MS, interval: 200 })
          .toContain("setup installed alpha@1.0.0");
        const log = await life.text(`${session.path}/logs?follow=0`);
        expect(log).toContain("setup again");
        // npm checks what it gets. It never got a wrong or short file as a whole.
        expect(log).not.toContain("EINTEGRITY");
        // The cache now has the whole file, and nothing else.
        const kept = filesIn(packages).filter((file) => readFileSync(file).length > 100_000);
        expect(kept.map((file) => sha256(readFileSync(file)))).toEqual([sha256(tarball)]);
        await after.stop();
      },
      TEST_MS,
    );
  },
);
