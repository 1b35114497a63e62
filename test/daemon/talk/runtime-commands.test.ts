/** Messages that begin with a command of the runtime (daemon/adapters/commands.ts). */
import { expect, test } from "vitest";
import { commandIn, toCommands } from "../../../daemon/adapters/commands.ts";

test.each([
  ["/greet", { name: "greet", rest: "" }],
  ["  /greet heron and\ncrake ", { name: "greet", rest: "heron and\ncrake" }],
  ["/mcp:server:prompt one", { name: "mcp:server:prompt", rest: "one" }],
  ["Say /greet", null],
  ["/", null],
  ["/ greet", null],
])("%j begins with %j", (text, command) => {
  expect(commandIn(text)).toEqual(command);
});

test("people are offered so many commands as they can read, and none that they cannot write", () => {
  const told = [
    { name: "two words" },
    { name: "x".repeat(101) },
    { name: "greet", description: "y".repeat(400) },
    ...Array.from({ length: 300 }, (_, at) => ({ name: `c${at}`, description: null })),
  ];
  const offered = toCommands(told);
  expect(offered).toHaveLength(200);
  expect(offered[0]).toEqual({ name: "greet", description: "y".repeat(300) });
  expect(offered[1]).toEqual({ name: "c0", description: null });
});
