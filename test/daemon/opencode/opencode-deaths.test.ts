/** A message whose agent runtime dies on it: it is answered, or its turn ends with an error. The model gets it at most once. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { TURN_LIMITS } from "../../../daemon/adapters/adapter.ts";
import { sampled } from "../../support/vitest/rings.ts";
import type { RunOptions } from "../support/running.ts";
import type { Moment } from "../support/fake-opencode.ts";
import { Steered } from "../support/steered.ts";

const FAKE = path.join(import.meta.dirname, "../support/fake-opencode.ts");

let steered: Steered | null = null;
afterEach(async () => {
  await steered?.stop();
  steered = null;
});

const home = ({ daemon }: Steered) => path.join(daemon.directory, "home");
/** A daemon with an opencode that dies once, at the moment. */
const start = async (moment: Moment, options: RunOptions = {}): Promise<Steered> => {
  steered = await Steered.start(
    {
      ...options,
      prepare: (_, directory) => writeFileSync(path.join(directory, "home", "moment"), moment),
    },
    { adapter: "opencode", command: (port) => [process.execPath, FAKE, String(port)] },
  );
  return steered;
};
/** The texts with which the model was called. */
const asked = (one: Steered): readonly string[] =>
  (JSON.parse(readFileSync(path.join(home(one), "opencode.json"), "utf8")) as { asked: string[] }).asked;
const answers = (one: Steered, id: string) =>
  one.answersTo(id).map(({ content, status }) => [status, content[0]?.type === "text" && content[0].text]);
const ANSWERED = [["completed", "The answer."]];
const CUT = { state: "interrupted", error: { code: "runtime_ended" } };
const NO_ANSWER = { state: "failed", error: { code: "no_answer" } };

/** Gives a message. @returns its turn, which has ended */
const turnOf = async (one: Steered, id: string, text: string): Promise<number> => {
  const turn = await one.deliver(id, text);
  await one.ended(turn);
  return turn;
};

const BEFORE = ["asked", "answered", "stored"] as const;
const DURING = ["busy", "busy untold", "answering"] as const;

describe("a message whose runtime dies", () => {
  test.each(sampled(BEFORE, ["stored"]))("when it is %s is answered", async (moment) => {
    const one = await start(moment);
    await turnOf(one, "m", "hello");
    expect(answers(one, "m")).toEqual(ANSWERED);
    expect(asked(one)).toEqual(["hello"]);
  });

  test.each(sampled(DURING, ["busy untold"]))(
    "when it is %s tells so, and the next one is answered",
    async (moment) => {
      const one = await start(moment);
      const turn = await turnOf(one, "m", "hello");
      await one.endedAs({ ...CUT, conversation: { number: turn, message_id: "m" } });
      const before = moment === "answering" ? ["hello"] : [];
      expect(asked(one)).toEqual(before);
      await turnOf(one, "n", "more");
      expect(answers(one, "n")).toEqual(ANSWERED);
      expect(asked(one)).toEqual([...before, "more"]);
    },
  );
});

describe("an initial prompt whose runtime dies", () => {
  const environment = { PLATFORM_INITIAL_PROMPT: "hello", PLATFORM_BOOTSTRAP_AGENT_SESSION: "1" };

  test.each(sampled(BEFORE, ["answered", "stored"]))("when it is %s is answered", async (moment) => {
    const one = await start(moment, { environment });
    await one.ended(1);
    expect(answers(one, one.daemon.sessionId)).toEqual(ANSWERED);
    expect(asked(one)).toEqual(["hello"]);
  });

  test.each(sampled(DURING, ["busy untold"]))("when it is %s tells so", async (moment) => {
    const one = await start(moment, { environment });
    await one.endedAs({ ...CUT, conversation: { number: 1, message_id: one.daemon.sessionId } });
    expect(asked(one)).toEqual(moment === "answering" ? ["hello"] : []);
  });
});

describe("a message that its runtime takes", () => {
  test("and does not give to the model fails", async () => {
    const one = await start("hangs", { turnLimits: { ...TURN_LIMITS, modelSilenceMs: 1 } });
    await turnOf(one, "m", "hello");
    await one.endedAs(NO_ANSWER);
  });

  test("and drops without a word fails", async () => {
    const one = await start("resting untold");
    await turnOf(one, "m", "hello");
    await one.endedAs(NO_ANSWER);
    await turnOf(one, "n", "more");
    expect(answers(one, "n")).toEqual(ANSWERED);
  });
});
