/** Git processes that did what they were told and said otherwise, and what they are told at all. */
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import * as ManagedRuntime from "effect/ManagedRuntime";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { hostedBackend } from "../../../src/git/repository/hosted.ts";
import { GitBackend } from "../../../src/git/port.ts";
import { gitStandIn } from "../git-stand-in.ts";

const root = mkdtempSync(join(tmpdir(), "answer-lost-"));
const runtime = ManagedRuntime.make(
  hostedBackend({ directory: join(root, "repositories"), allowHosts: ["127.0.0.1"] }),
);
afterEach(() => void vi.unstubAllEnvs());
afterAll(async () => {
  await runtime.dispose();
  rmSync(root, { recursive: true, force: true });
});

const backend = <A, E>(use: (hosted: GitBackend["Service"]) => Effect.Effect<A, E>): Promise<A> =>
  runtime.runPromise(Effect.flatMap(GitBackend, use));

const standIn = (script: string): void => gitStandIn(root, script);

describe("a branch that git creates without reporting it", () => {
  const repository = { projectId: randomUUID() };
  let tip = "";
  beforeAll(async () => {
    await backend((hosted) => hosted.create({ ...repository, importFrom: null, defaultBranch: "main" }));
    tip = (await backend((hosted) => hosted.branchTip(repository, "main"))) ?? "";
  });

  const attempt = (branch: string) =>
    backend((hosted) => Effect.result(hosted.createBranch(repository, { branch, commit: tip })));
  const made = (branch: string) => backend((hosted) => hosted.branchTip(repository, branch));

  it("counts as created after a lookup [G12]", async () => {
    const branch = randomUUID();
    standIn(`"$REAL" "$@"; code=$?; case " $* " in *" update-ref "*) exit 1 ;; esac; exit $code`);
    expect((await attempt(branch))._tag).toBe("Success");
    expect(await made(branch)).toBe(tip);
  });

  it("does not count as created if git really failed [G12]", async () => {
    const branch = randomUUID();
    standIn(`case " $* " in *" update-ref "*) exit 1 ;; esac; exec "$REAL" "$@"`);
    expect((await attempt(branch))._tag).toBe("Failure");
    expect(await made(branch)).toBeNull();
  });
});

describe("a password in an import's address", () => {
  it("is refused before it reaches git, the host or a message [G04]", async () => {
    const trace = join(root, "trace");
    standIn(`printf '%s\\n' "$*" >> '${trace}'; env >> '${trace}'; exec "$REAL" "$@"`);
    let heard = 0;
    const host = createServer((_, response) => {
      heard += 1;
      response.end();
    });
    await new Promise<void>((resolve) => host.listen(0, "127.0.0.1", () => resolve()));
    const { port } = host.address() as AddressInfo;
    const projectId = randomUUID();
    const importFrom = `http://user:pw-canary@127.0.0.1:${port}/x.git`;
    const refused = await backend((hosted) =>
      Effect.result(hosted.create({ projectId, importFrom, defaultBranch: null })),
    );
    host.close();
    expect(refused).toMatchObject({ _tag: "Failure", failure: { code: "import_failed" } });
    expect(JSON.stringify(refused)).not.toContain("pw-canary");
    expect(heard).toBe(0);
    expect(existsSync(trace) ? readFileSync(trace, "utf8") : "").not.toContain("pw-canary");
    expect(existsSync(join(root, "repositories", `${projectId}.git`))).toBe(false);
  });
});
