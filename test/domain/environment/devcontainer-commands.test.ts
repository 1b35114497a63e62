import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as Result from "effect/Result";
import { describe, expect, it } from "vitest";
import { readCommands } from "../../../src/domain/environment/devcontainer-commands.ts";
import { parseJsonc } from "../../../src/domain/environment/jsonc.ts";

const read = (file: object) => readCommands(Result.getOrThrow(parseJsonc(Buffer.from(JSON.stringify(file)))));

/** Runs the script as the daemon does. */
const ran = (file: object, variables: Readonly<Record<string, string>> = {}) => {
  const { script } = Result.getOrThrow(read(file));
  const { stdout, status } = spawnSync("sh", ["-e", "-c", script ?? "exit 99"], {
    encoding: "utf8",
    env: { PATH: "/usr/bin:/bin", ...variables },
  });
  return { lines: stdout.trimEnd().split("\n"), status };
};

/** Waits for the other's file. */
const wait = (own: string, other: string) =>
  `touch "$D/${own}"; until [ -e "$D/${other}" ]; do sleep 0.02; done; echo done`;

describe("the lifecycle commands", () => {
  it("run in the format's order, whatever the file's order is", () => {
    const file = {
      postStartCommand: "echo 4",
      postCreateCommand: ["echo", "3"],
      onCreateCommand: "echo 1",
      updateContentCommand: { one: "echo 2" },
      postAttachCommand: "echo never",
    };
    const names = ["onCreateCommand", "updateContentCommand", "postCreateCommand", "postStartCommand"];
    expect(Result.getOrThrow(read(file)).names).toEqual(names);
    const lines = names.flatMap((name, index) => [`# ${name}`, String(index + 1)]);
    expect(ran(file)).toEqual({ lines, status: 0 });
  });

  it("are none without a command", () => {
    for (const file of [
      {},
      { onCreateCommand: "" },
      { onCreateCommand: null, postCreateCommand: [] },
      { postStartCommand: {} },
    ])
      expect(read(file), JSON.stringify(file)).toEqual(Result.succeed({ names: [], script: null }));
  });

  it("run a text in a shell of its own, and a list without one", () => {
    const text = `cd / && X="it's" && echo "$X $PWD" && exit 0`;
    const list = ["printf", "%s|", "a b", "$HOME", "it's", "*", ""];
    expect(
      ran({ onCreateCommand: text, updateContentCommand: list, postCreateCommand: ["exit", "0"] }),
    ).toEqual({
      lines: [
        "# onCreateCommand",
        "it's /",
        "# updateContentCommand",
        "a b|$HOME|it's|*||# postCreateCommand",
      ],
      // `exit` is no program.
      status: 127,
    });
  });

  it("of an object run at the same time, and all end before the next", () => {
    const D = mkdtempSync(join(tmpdir(), "platform-test-"));
    const { lines, status } = ran(
      { onCreateCommand: { a: wait("a", "b"), b: wait("b", "a") }, postCreateCommand: "echo next" },
      { D },
    );
    rmSync(D, { recursive: true });
    expect([lines, status]).toEqual([
      ["# onCreateCommand", "done", "done", "# postCreateCommand", "next"],
      0,
    ]);
  });

  it("end with the first that fails, and with its exit code", () => {
    expect(ran({ onCreateCommand: "exit 7", postCreateCommand: "echo never" })).toEqual({
      lines: ["# onCreateCommand"],
      status: 7,
    });
    const { lines, status } = ran({
      onCreateCommand: { bad: "exit 3", good: "sleep 0.2; echo good" },
      postCreateCommand: "echo never",
    });
    expect([lines, status]).toEqual([["# onCreateCommand", "good"], 3]);
    // As in a shell, the last program of a text decides.
    expect(ran({ onCreateCommand: "false; true" }).status).toBe(0);
  });

  it("have the folders of the checkout, and leave the shell's variables alone", () => {
    expect(ran({ onCreateCommand: "Y=y; echo ${containerWorkspaceFolder} ${Y} $Y" }).lines[1]).toBe(
      "/workspace y y",
    );
    expect(ran({ onCreateCommand: ["echo", "${localEnv:X:it's}"] }).lines[1]).toBe("it's");
  });

  it.each([
    [{ onCreateCommand: 1 }, "`onCreateCommand` must be a text, a list of texts, or an object"],
    [{ postStartCommand: true }, "`postStartCommand` must be"],
    [{ postCreateCommand: ["a", 1] }, "`postCreateCommand` must be"],
    [{ postCreateCommand: { a: { b: "c" } } }, "`postCreateCommand` must be"],
    [{ postCreateCommand: "echo ${localEnv:HOME}" }, "refers to ${localEnv:HOME}, which has no value"],
    [{ postCreateCommand: ["${containerEnv:X}"] }, "refers to ${containerEnv:X}"],
    [{ postCreateCommand: "a\0b" }, "NUL"],
    [{ postCreateCommand: "a".repeat(32 * 1024) }, "too long"],
    [
      { postCreateCommand: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`c${n}`, "true"])) },
      "at most 20 commands",
    ],
  ])("are refused with the reason: %j", (file, reason) => {
    expect(Result.getFailure(read(file)).valueOrUndefined?.reason).toContain(reason);
  });
});
