/** The project's setup command, as the daemon runs it. test/e2e/warm.real.test.ts shows it in a conversation. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import { describe, expect, test } from "vitest";
import { Allowance } from "../../../daemon/logs/allowance.ts";
import type { ItemDraft } from "../../../daemon/adapters/adapter.ts";
import type { LogFields } from "../../../daemon/logs/log.ts";
import { Redactor } from "../../../src/domain/secret/redactor.ts";
import { runSetup } from "../../../daemon/boot/setup.ts";
import { isThere } from "../support/running.ts";
import { daemonPerTest } from "../support/per-test.ts";

const { start } = daemonPerTest();

const textOf = ({ content }: ItemDraft): string =>
  content.map((part) => ("text" in part ? part.text : "")).join("");

/** Runs a command on this machine. @returns what the agent, the people and the log hear of it */
const ran = async (
  command: string,
  {
    timeoutMs = 60_000,
    program = [] as readonly string[],
    title = null as string | null,
    place = "`setup` of a test",
  } = {},
) => {
  const notes: string[] = [];
  const lines: string[] = [];
  const states: LogFields[] = [];
  let ends = 0;
  const failure = await Effect.runPromise(
    runSetup(
      {
        feed: { item: (item) => void notes.push(textOf(item)) },
        redactor: new Redactor(["a-secret-value"]),
        log: (event, fields = {}) => {
          if (event === "output") lines.push(`${String(fields["source"])}: ${String(fields["line"])}`);
          else states.push(fields);
        },
        allowance: new Allowance(),
        onEnd: () => (ends += 1),
      },
      {
        command,
        title,
        place,
        timeoutMs,
        launch: (given) => ({
          prefix: [],
          command: [...program, ...given],
          env: { PATH: process.env["PATH"] ?? "", SECRET: "a-secret-value" },
          cwd: "/",
        }),
      },
    ),
  );
  expect(ends).toBe(1);
  return { failure, notes, lines, states };
};

/** A killed process closes its output a moment before it has ended. */
const untilGone = (lines: readonly string[]): Promise<void> =>
  expect.poll(() => isThere(Number(lines[0]?.replace("setup: ", "")))).toBe(false);

describe("a setup command", () => {
  test("that succeeds is shown with the time that it took, and the agent hears nothing", async () => {
    const { failure, notes, lines, states } = await ran("\necho one\necho two >&2\n");
    expect(failure).toBeNull();
    expect(notes).toEqual([
      "The setup command runs: echo one … (2 lines)",
      expect.stringMatching(/^The setup command is done\. It took \d+\.\d s\.$/),
    ]);
    expect(lines.toSorted()).toEqual(["setup: one", "setup: two"]);
    expect(states).toMatchObject([{ state: "running" }, { state: "done" }]);
  });

  test("ends with its first line that fails, and the agent gets the reason and the end of the output", async () => {
    const { failure, notes } = await ran("seq 1 30\necho $SECRET\nexit 7\necho never");
    expect(notes.at(-1)).toBe(
      "The setup command failed: it ended with exit code 7. The session's log has its output. The agent gets the last lines.",
    );
    expect(failure?.text).toContain("It failed: it ended with exit code 7.");
    expect(failure?.text).toContain("in the workspace (`setup` of a test):\nseq 1 30\n");
    expect(failure?.text.split("\n").slice(-3)).toEqual([
      "29",
      "30",
      expect.not.stringContaining("a-secret"),
    ]);
    expect(failure?.text).not.toContain("\n11\n");
    expect((await ran("false\ntrue")).failure?.text).toContain("exit code 1");
  });

  test("is ended with everything that it started when its time is over", async () => {
    const { failure, lines } = await ran("sleep 600 & echo $!; wait", { timeoutMs: 500 });
    expect(failure?.text).toContain("It failed: it ran longer than 0.5 s and was ended.");
    await untilGone(lines);
  });

  test("can have a title, which people see in its place", async () => {
    const { failure, notes } = await ran("echo x\nexit 1", { title: "a title", place: "a place" });
    expect(notes[0]).toBe("The setup command runs: a title");
    expect(failure?.text).toContain("(a place):\necho x\nexit 1\n");
  });

  test("leaves no program running", async () => {
    const { failure, lines } = await ran("sleep 600 & echo $!");
    expect(failure).toBeNull();
    await untilGone(lines);
  });

  test("that cannot be started, or is killed, has failed", async () => {
    expect((await ran("true", { program: ["/no/such/program"] })).failure?.text).toContain(
      "could not be started",
    );
    expect((await ran("kill -9 $$")).failure?.text).toContain("it was ended by SIGKILL");
  });
});

test("the command of the session's commit runs in the workspace, with the project's secrets", async () => {
  const setup = 'test -f platform.toml\\nprintf %s "$A_SECRET" > ../setup-saw\\npwd';
  const daemon = await start({
    files: { "platform.toml": `[environment]\nsetup = "${setup.replaceAll('"', '\\"')}"\n` },
    agentEnv: { A_SECRET: "a value of the project" },
  });
  await daemon.logged("setup", { state: "done" });
  expect(readFileSync(join(daemon.directory, "setup-saw"), "utf8")).toBe("a value of the project");
  await daemon.logged("output", { source: "setup", line: daemon.layout.workspace });
  await daemon.logged("ready");
  expect((await daemon.health()).boot.map(({ step }) => step)).toContain("setup_ended");
});

test("an invalid manifest runs nothing, and the log says why", async () => {
  const daemon = await start({
    files: { "platform.toml": '[environment]\nsetup = "touch ../setup-saw"\nunknown = 1\n' },
  });
  const { message } = await daemon.logged("manifest invalid");
  expect(message).toContain("Unknown field `unknown`.");
  await daemon.logged("ready");
  expect(existsSync(join(daemon.directory, "setup-saw"))).toBe(false);
});

const FILE = ".devcontainer/devcontainer.json";
const manifest = `[environment]\ndevcontainer = "${FILE}"\n`;
const json = (file: object) => JSON.stringify({ image: "debian:13", ...file });

describe("the devcontainer.json that the manifest names", () => {
  test("of the session's commit has the commands that prepare the checkout", async () => {
    const file = {
      postCreateCommand: ["sh", "-c", 'printf "%s " "$1" >> ../setup-saw', "sh", "it's"],
      onCreateCommand: 'test -f platform.toml && printf "%s " "$A_SECRET" >> ../setup-saw',
      postStartCommand: { one: "pwd" },
    };
    const daemon = await start({
      files: { "platform.toml": manifest, [FILE]: `// a comment\n${json(file)}` },
      agentEnv: { A_SECRET: "a-value" },
    });
    await daemon.logged("setup", { state: "done" });
    await daemon.logged("output", { source: "setup", line: "# postCreateCommand" });
    await daemon.logged("output", { source: "setup", line: daemon.layout.workspace });
    expect(readFileSync(join(daemon.directory, "setup-saw"), "utf8")).toBe("a-value it's ");
  });

  test("gives way to the manifest's own setup command", async () => {
    const daemon = await start({
      files: {
        "platform.toml": `${manifest}setup = "printf own > ../setup-saw"\n`,
        [FILE]: json({ postCreateCommand: "printf other >> ../setup-saw" }),
      },
    });
    await daemon.logged("setup", { state: "done" });
    expect(readFileSync(join(daemon.directory, "setup-saw"), "utf8")).toBe("own");
  });

  test.each([
    ["is missing", {}, "The commit has no such file"],
    ["cannot be used", { [FILE]: json({ features: { a: {} } }) }, "`features` is not supported."],
    ["is too large", { [FILE]: json({}) + " ".repeat(256 * 1024) }, "larger than 262144 bytes"],
  ])("runs nothing if it %s, and the log says why", async (_what, files, reason) => {
    const daemon = await start({ files: { "platform.toml": manifest, ...files } });
    const { message } = await daemon.logged("manifest invalid");
    expect(message).toContain(reason);
    await daemon.logged("ready");
  });

  test("has no effect without the manifest's entry", async () => {
    const daemon = await start({ files: { [FILE]: json({ postCreateCommand: "touch ../setup-saw" }) } });
    await daemon.logged("ready");
    expect(existsSync(join(daemon.directory, "setup-saw"))).toBe(false);
  });

  test("may have no commands", async () => {
    const daemon = await start({ files: { "platform.toml": manifest, [FILE]: json({}) } });
    await daemon.logged("ready");
    expect((await daemon.health()).boot.map(({ step }) => step)).not.toContain("setup_ended");
  });
});
