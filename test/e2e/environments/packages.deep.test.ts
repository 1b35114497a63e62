/** The package cache over real parts: service, sandboxes, npm and pip. The registry is on loopback, which its operator allows. */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { npmTarball, wheel } from "../../support/servers/package-files.ts";
import { PackageRegistry } from "../../support/servers/package-registry.ts";
import { LiveSession } from "../../support/service/sessions/live-session.ts";
import { Installation, type Life } from "../../support/service/process-service.ts";
import { TEST_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { changedPackage, PACKAGES_HOST, packageSettings } from "../each-provider.ts";

const runs = (...command: readonly [string, ...string[]]): boolean =>
  spawnSync(command[0], command.slice(1), { env: { PATH: "/usr/bin:/bin" } }).status === 0;
/** Sandboxes see the machine's /usr. */
const hasNpm = runs("npm", "--version");
const hasPip = runs("python3", "-m", "pip", "--version");
const missing = [hasNpm ? "" : "npm in /usr/bin", hasPip ? "" : "python3 with pip in /usr/bin"]
  .filter((name) => name !== "")
  .join(" and ");

const PACKAGES = ["alpha", "@acme/beta"] as const;
const FILES = /\.(?:tgz|whl)$/;

const SETUP = `
cd /tmp
mkdir app
cd app
echo '{"dependencies": {"alpha": "1.0.0", "@acme/beta": "1.0.0"}}' > package.json
npm install --no-audit --no-fund
grep resolved package-lock.json
rm -rf node_modules ~/.npm
npm ci --no-audit --no-fund
node -p "require('alpha') + ' and ' + require('@acme/beta')"
python3 -m pip install --no-cache-dir --target /tmp/python gamma
PYTHONPATH=/tmp/python python3 -c "import gamma; print('gamma is', gamma.version)"
`;

describe.skipIf(!sandboxesStartHere || missing !== "")(
  `package managers in sandboxes ${missing === "" ? "" : `need ${missing}`}`,
  () => {
    let registry: PackageRegistry;
    let installation: Installation;
    let life: Life;
    beforeAll(async () => {
      registry = await PackageRegistry.open(PACKAGES_HOST);
      // As a registry behind TLS names itself. Lockfiles have this address.
      registry.publicUrl = `https://${PACKAGES_HOST}:${registry.port}`;
      for (const name of PACKAGES)
        registry.addNpm(name, "1.0.0", npmTarball(name, "1.0.0", randomBytes(300_000)));
      registry.addWheel("gamma-1.0.0-py3-none-any.whl", wheel("gamma", "1.0.0", randomBytes(300_000)));
      installation = await Installation.open();
      life = await installation.start({
        ...packageSettings(registry),
        PLATFORM_PACKAGE_CACHE_PYPI: `http://${PACKAGES_HOST}:${registry.port}/simple`,
      });
    }, TEST_MS);
    afterAll(async () => {
      await life?.end("SIGTERM");
      await installation?.close();
      registry?.close();
    }, TEST_MS);

    const files = () => registry.paths().filter((path) => FILES.test(path));

    /** Installs everything in a new project's sandbox. @returns the output */
    const install = async (): Promise<string> => {
      const repository = await installation.repository(`[environment]\nsetup = '''${SETUP}'''\n`);
      const session = await LiveSession.startIn(life, await life.project(repository), {
        initial_prompt: "run: true",
      });
      const log = () => life.text(`${session.path}/logs?follow=0`);
      await expect
        .poll(log, { timeout: TEST_MS, interval: 200 })
        .toMatch(/setup gamma is|setup.*(?:ERR!|error)/);
      const output = await log();
      await session.stop();
      return output;
    };

    it(
      "get package files of the first sandbox's installation in the second one, without a request for them",
      async () => {
        const first = await install();
        expect(first).toContain("setup alpha@1.0.0 and @acme/beta@1.0.0");
        expect(first).toContain("setup gamma is 1.0.0");
        // The lockfile is right outside of the sandbox, too.
        for (const name of PACKAGES) expect(first).toContain(`"resolved": "${registry.publicUrl}/${name}/-/`);
        // `npm install`, `npm ci` and pip: each file once.
        expect(files().toSorted()).toEqual([
          "/@acme/beta/-/beta-1.0.0.tgz",
          "/alpha/-/alpha-1.0.0.tgz",
          "/wheels/gamma-1.0.0-py3-none-any.whl",
        ]);
        const second = await install();
        expect(second).toContain("setup alpha@1.0.0 and @acme/beta@1.0.0");
        expect(second).toContain("setup gamma is 1.0.0");
        expect(files()).toHaveLength(3);
      },
      TEST_MS,
    );

    it(
      "get no package file that the registry has changed [E19]",
      () => changedPackage(registry, { installation, life, provider: "local" }),
      TEST_MS,
    );
  },
);
