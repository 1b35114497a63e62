import * as Result from "effect/Result";
import { expect, it } from "vitest";
import {
  INSTALLABLE_EXPECTED,
  offeredRuntimes,
  parseInstallable,
  withCommand,
} from "../../../src/domain/runtimes/runtimes.ts";
import { ACP } from "../../../src/domain/runtimes/acp.ts";
import { PLAIN } from "../../../src/domain/runtimes/plain.ts";

const namesOf = (...given: Parameters<typeof offeredRuntimes>) =>
  offeredRuntimes(...given).map(({ name }) => name);

it("offers the installation's own runtime first, and those whose program a project may bring", () => {
  expect(namesOf({ adapter: "opencode", command: ["opencode", "serve"] }, [])).toEqual([
    "opencode",
    "acp",
    "plain",
  ]);
  expect(namesOf({ adapter: "plain", command: ["ours"] }, [])).toEqual(["plain", "acp"]);
});

it("offers further runtimes only if the operator names them", () => {
  expect(
    namesOf({ adapter: "acp", command: ["ours"] }, ["gemini", "codex", "claude-code", "opencode"]),
  ).toEqual(["acp", "opencode", "claude-code", "codex", "gemini", "plain"]);
});

it("gives the installation's own runtime the operator's command", () => {
  const [own] = offeredRuntimes({ adapter: "acp", command: ["ours", "--acp"] }, []);
  expect(own).toMatchObject({ name: "acp", command: ["ours", "--acp"], takesCommand: true });
});

it("sets up the models of opencode, whatever drives it, and of no other program", () => {
  expect(withCommand(ACP, ["/usr/bin/opencode", "acp"]).models).toBe("platform");
  expect(withCommand(ACP, ["ours"]).models).toBe("own");
  expect(withCommand(PLAIN, ["opencode", "serve"]).models).toBeNull();
});

it("offers an entry of a registry by its id, with what its files say, and never in the place of a record", () => {
  expect(parseInstallable("codex, acp:heron,acp:heron")).toEqual(
    Result.succeed(["codex", "acp:heron", "acp:heron"]),
  );
  for (const wrong of ["heron", "acp:", "acp:../x", "acp:gemini", "acp:plain"])
    expect(parseInstallable(wrong)).toEqual(Result.fail(INSTALLABLE_EXPECTED));
  const offered = offeredRuntimes({ adapter: "opencode", command: ["opencode"] }, ["acp:heron", "acp:heron"]);
  expect(offered.map(({ name }) => name)).toEqual(["opencode", "heron", "acp", "plain"]);
  expect(offered[1]).toMatchObject({ adapter: "acp", takesCommand: false, packaged: "entry" });
});
