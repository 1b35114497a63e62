/** Each kind of saved work with each provider of sandboxes that this machine has, as one table. */
import { readdirSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { lacksEngine, TestEngine } from "../../support/machine/container-engine.ts";
import { lacksRunsc, runsc } from "../../support/machine/runsc.ts";
import { TEST_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { LiveSession } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, LIGHT_AGENT } from "../../support/service/process-service.ts";
import { CHECK, KINDS, WORK } from "./work-of-each-kind.ts";

interface Provider {
  readonly name: string;
  /** Why this machine does not have it. */
  readonly lacks: string | null;
  readonly settings: Readonly<Record<string, string>>;
  /** The engine of its containers, with gVisor's program if its runtime is that. */
  readonly engine?: { readonly runsc: string | null };
}

const lacksBubblewrap = sandboxesStartHere ? null : "(needs bubblewrap)";
const docker = { PLATFORM_SANDBOX_PROVIDER: "docker" };

const PROVIDERS: readonly Provider[] = [
  { name: "local", lacks: lacksBubblewrap, settings: { PLATFORM_SANDBOX_PROVIDER: "local" } },
  {
    name: "gvisor",
    lacks: lacksRunsc ?? lacksBubblewrap,
    settings: { PLATFORM_SANDBOX_PROVIDER: "gvisor", PLATFORM_RUNSC: runsc ?? "" },
  },
  { name: "docker, runc", lacks: lacksEngine, settings: docker, engine: { runsc: null } },
  {
    name: "docker, runsc",
    lacks: lacksEngine ?? lacksRunsc,
    settings: { ...docker, PLATFORM_DOCKER_RUNTIME: "runsc" },
    engine: { runsc },
  },
];

/** Runs a command as the agent. @returns what it printed */
const output = async (session: LiveSession, command: string): Promise<string> => {
  const { id } = await session.call("POST", "runtime/session", { title: "asked for by a test" });
  const parts = [{ type: "text", text: `run: ${command}` }];
  const answer = await session.call("POST", `runtime/session/${String(id)}/message`, { parts });
  return String((answer["parts"] as readonly Json[])[0]?.["text"]);
};

describe("saved work", () => {
  const table = new Map<string, readonly string[]>();
  afterAll(() => {
    for (const { name, lacks } of PROVIDERS) {
      const held = table.get(name);
      process.stdout.write(held === undefined ? `${name}: not run ${lacks ?? ""}\n` : `${name}:\n`);
      for (const line of held ?? []) process.stdout.write(`  ${line}\n`);
    }
  });

  for (const { name, lacks, settings, engine } of PROVIDERS) {
    it.skipIf(lacks !== null)(
      `of each kind comes back with ${name} ${lacks ?? ""}`,
      { timeout: TEST_MS },
      async () => {
        const before = readdirSync("/usr/local/bin");
        const images = await mkdtemp(path.join(tmpdir(), "platform-test-saves-"));
        await chmod(images, 0o755);
        const installation = await Installation.open();
        const running = engine === undefined ? null : await TestEngine.open(engine.runsc);
        const life = await installation.start({
          ...LIGHT_AGENT,
          ...settings,
          PLATFORM_IMAGES_DIR: path.join(images, "kept"),
          ...(running !== null && { PLATFORM_DOCKER_SOCKET: running.socket }),
        });
        try {
          const session = await LiveSession.start(life, installation);
          await session.run(WORK);
          const { saved } = await session.call("POST", "stop", { save: "require" });
          expect(saved).toMatchObject({ state: "complete", pending: [], error: null });
          await session.call("POST", "restart", { restore_saved: true });
          const [, , , projectId = "", , id = ""] = session.path.split("/");
          const again = await life.session(projectId, id, ["running", "failed"]);
          expect(again).toMatchObject({ status: "running", restored: { renamed: [], error: null } });
          const lines = (await output(session, CHECK))
            .split("\n")
            .filter((line) => /^(held|lost): /.test(line));
          table.set(name, lines);
          expect(lines).toEqual(KINDS.map((kind) => `held: ${kind.name}`));
          await session.stop();
          // Nothing is left on this machine's own PATH.
          expect(readdirSync("/usr/local/bin")).toEqual(before);
        } finally {
          await life.end("SIGTERM");
          await running?.close();
          await installation.close();
          await rm(images, { recursive: true, force: true });
        }
      },
    );
  }
});
