/** Sandboxes that wait for a session, over real parts: service, sandboxes, agent runtime, and the service's end in between. */
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LiveSession, POLL } from "../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life, LIGHT_AGENT } from "../support/service/process-service.ts";
import { useRunDatabase } from "../support/service/run-database.ts";
import { sandboxesStartHere } from "../support/requirements.ts";
import { TEST_MS } from "../support/patience.ts";
import { deepTest, isDeep } from "../support/vitest/rings.ts";

let installation: Installation;
let life: Life;

const waitingOf = async (pid: string) =>
  (await life.call("GET", `/v1/projects/${pid}/environment`))["waiting"] as Json;

const isReady = (pid: string, ready: number) =>
  expect.poll(() => waitingOf(pid), POLL).toMatchObject({ ready });

/** @returns what the session's tool printed, after its end: while it runs, the output grows */
const toolOutput = async (session: LiveSession): Promise<string | undefined> => {
  const { items } = (await session.call("GET", "conversation")) as unknown as {
    readonly items: readonly {
      readonly status: string;
      readonly tool: { readonly output: string | null } | null;
    }[];
  };
  return (
    items.find(({ status, tool }) => status === "completed" && typeof tool?.output === "string")?.tool
      ?.output ?? undefined
  );
};

/** The processes of a project's sandboxes that have no session. */
const waitingIn = (projectId: string) =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const variables = environmentOf(name);
      const isWaiting =
        variables.includes(`PLATFORM_PROJECT_ID=${projectId}`) &&
        !variables.some((variable) => variable.startsWith("PLATFORM_SESSION_ID="));
      const token = variables.find((variable) => variable.startsWith("PLATFORM_CLI_TOKEN="));
      if (!isWaiting || token === undefined) return [];
      const secrets = variables.flatMap(
        (variable) => /^PLATFORM_(?:\w*_)?TOKEN=(.+)$/.exec(variable)?.[1] ?? [],
      );
      return [{ pid: Number(name), token, secrets }];
    });

const environmentOf = (pid: string): readonly string[] => {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
  } catch {
    return []; // It ended during the look.
  }
};

const statusOf = async (target: string, token: string): Promise<number> =>
  (await fetch(`${life.url}${target}`, { headers: { authorization: `Bearer ${token}` } })).status;

const sandboxOf = (session: LiveSession): Promise<Json> => session.call("GET", "sandbox");

/** Room for those of all tests. */
const SETTINGS = {
  PLATFORM_WARM_MEMORY_MB: "6000",
  // Prompts, which only opencode gets here, are of the deep tests.
  ...(isDeep ? {} : LIGHT_AGENT),
};

/** Fails in the sandbox of another session. The commit came before the session. */
const isOfSession = (id: string): string =>
  [
    `[ "$PLATFORM_SESSION_ID $PLATFORM_BRANCH_NAME $PLATFORM_BASE_REF $PLATFORM_AGENT_NAME" = "${id} ${id} main default" ]`,
    `[ "$(git log -1 --format=%s)" = Begin ]`,
    `[ "$(git branch --show-current)" = ${id} ]`,
    `git reflog --format=%gs | grep -qE "^checkout: moving from main to [0-9a-f]{40}$"`,
  ].join(" && ");

describe.runIf(sandboxesStartHere)("a sandbox that waits", () => {
  const database = useRunDatabase();
  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start({ ...database(), ...SETTINGS });
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
  }, TEST_MS);

  it(
    "becomes that of the next session, which finds its own variables and branch, and another one takes its place",
    async () => {
      const pid = await life.project(await installation.repository("[environment]\nwarm = 1\n"));
      await isReady(pid, 1);
      const session = await LiveSession.startIn(life, pid);
      await session.run(isOfSession(session.path.split("/").at(-1) ?? ""));
      expect(await sandboxOf(session)).toMatchObject({ waited: true, status: "active" });
      await isReady(pid, 1);
      await session.stop();
    },
    TEST_MS,
  );

  deepTest(
    "has run the project's setup command, and the conversation says so",
    async () => {
      const manifest =
        "[environment]\nwarm = 1\nsetup = 'echo ahead of $PLATFORM_PROJECT_ID > prepared.txt'\n";
      const pid = await life.project(await installation.repository(manifest));
      await isReady(pid, 1);
      const session = await LiveSession.startIn(life, pid, { initial_prompt: "run: cat prepared.txt" });
      await expect.poll(() => toolOutput(session), POLL).toContain(`ahead of ${pid}`);
      const { items } = (await session.call("GET", "conversation")) as {
        readonly items: readonly {
          readonly kind: string;
          readonly content: readonly { readonly text?: string }[];
        }[];
      };
      const notes = items.filter(({ kind }) => kind === "note").map(({ content }) => content[0]?.text);
      // The newest comes first.
      expect(notes.toReversed()).toEqual([
        expect.stringMatching(/^The setup command began before this session: echo ahead of /),
        expect.stringMatching(/^The setup command is done\. It took /),
      ]);
      await session.stop();
    },
    TEST_MS,
  );

  deepTest(
    "starts when a person is about to start a session, not again for the next keystroke, and its tokens open nothing [E17]",
    async () => {
      const pid = await life.project(await installation.repository(""));
      const about = `/v1/projects/${pid}/environment/warm`;
      expect(await life.call("POST", about)).toEqual({ possible: true });
      expect(await life.call("POST", about)).toEqual({ possible: true });
      await isReady(pid, 1);
      const secrets = new Set(waitingIn(pid).flatMap((process) => process.secrets));
      expect(secrets.size).toBeGreaterThan(1);
      for (const secret of secrets)
        for (const target of ["", "/git/clone-credential", "/connectors", "/sessions"])
          // A service key without a live session is told so.
          expect([401, 403], target).toContain(await statusOf(`/v1/projects/${pid}${target}`, secret));
      expect(await waitingOf(pid)).toEqual({ wanted: 0, ready: 1, for_triggers: 0, possible: true });
      const session = await LiveSession.startIn(life, pid);
      expect(await sandboxOf(session)).toMatchObject({ waited: true });
      expect(await waitingOf(pid)).toEqual({ wanted: 0, ready: 0, for_triggers: 0, possible: true });
      await session.stop();
    },
    TEST_MS,
  );
});
