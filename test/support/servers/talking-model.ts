/**
 * A model on loopback that does what its prompt says, in the four formats of model APIs (model-wires.ts). One line of the prompt is a
 * JSON list of steps, one for each call of the model. It streams its texts in small pieces. Its model `broke` always wants money.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { type Asked, type OfferedTool, type Said, wireOf } from "./model-wires.ts";

export interface Step {
  readonly think?: string;
  readonly say?: string;
  /** Waits behind the first piece of its text, until the test lets it go on or the caller leaves. */
  readonly hold?: true;
  /** Names and arguments of tools. */
  readonly tools?: readonly (readonly [string, object])[];
  /** A command for the runtime's own shell, whatever it calls it. */
  readonly run?: string;
  /** A file for the runtime's own way to write one, and its text. */
  readonly write?: readonly [path: string, text: string];
  /** A plan, by the runtime's own way to propose one. */
  readonly plan?: string;
  /** Steps of a sub-agent, by the runtime's own tool for one. Without this tool, the model says so. */
  readonly delegate?: readonly Step[];
  /** A question and its choices, by the runtime's own tool for one. Without this tool, the model says so. */
  readonly ask?: readonly [question: string, choices: readonly string[]];
  /** The status of a refusal, and its words. */
  readonly refuse?: number;
  readonly words?: string;
  /** How often the call fails with 500 before it is answered. */
  readonly fails?: number;
}

/** A call that the model got. */
export interface TalkingCall extends Asked {
  /** The whole request. */
  readonly text: string;
  readonly path: string;
  readonly key: string;
  readonly status: number;
}

/** The prompt for these steps. */
export const promptOf = (steps: readonly Step[]): string => `Do this:\n${JSON.stringify(steps)}`;

const wordsOf = (status: number, { words = "refused as the prompt says" }: Step): string =>
  `${status === 404 ? "The model does not exist: " : ""}${words}`;

/** The shells of runtimes, and their arguments for a command. */
const SHELLS: Readonly<Record<string, (command: string) => object>> = {
  bash: (command) => ({ command, description: "as the prompt says" }),
  Bash: (command) => ({ command, description: "as the prompt says" }),
  run_shell_command: (command) => ({ command, description: "as the prompt says" }),
  exec_command: (cmd) => ({ cmd }),
};

/** The ways of runtimes to write a file below /workspace, and their arguments. A text is the whole input of a free tool. */
const WRITERS: Readonly<Record<string, (path: string, text: string) => object | string>> = {
  write: (path, content) => ({ filePath: `/workspace/${path}`, content }),
  Write: (path, content) => ({ file_path: `/workspace/${path}`, content }),
  write_file: (path, content) => ({ file_path: `/workspace/${path}`, content }),
  apply_patch: (path, text) =>
    [
      "*** Begin Patch",
      `*** Add File: ${path}`,
      ...text
        .trimEnd()
        .split("\n")
        .map((line) => `+${line}`),
      "*** End Patch",
    ].join("\n"),
};

type Wanted = readonly [name: string, input: object];

/**
 * The tools by which runtimes propose a plan. They read it from a file, whose place their words name. A runtime without
 * one of these tools says the plan.
 */
const PLANNERS: Readonly<Record<string, (plan: string, words: string) => readonly Wanted[]>> = {
  ExitPlanMode: (plan, words) => {
    const [file_path] = /\/[\w./-]+\/plans\/[\w-]+\.md/.exec(words) ?? [];
    return [
      ["Write", { file_path, content: plan }],
      ["ExitPlanMode", {}],
    ];
  },
  exit_plan_mode: (plan, words) => {
    const [directory = ""] = /\/[\w./-]+\/plans(?=[/`"\\])/.exec(words) ?? [];
    return [
      ["write_file", { file_path: `${directory}/plan.md`, content: plan }],
      ["exit_plan_mode", { plan_filename: "plan.md" }],
    ];
  },
};

/** The tools by which runtimes start a sub-agent, and their arguments for its prompt. */
const DELEGATES: Readonly<Record<string, (prompt: string) => object>> = {
  task: (prompt) => ({ description: "as the prompt says", prompt, subagent_type: "general" }),
  Agent: (prompt) => ({ description: "as the prompt says", prompt, subagent_type: "general-purpose" }),
};

/** The tools by which runtimes ask a question with choices. */
const QUESTIONERS: Readonly<Record<string, (question: string, choices: readonly string[]) => object>> = {
  question: (question, choices) => ({
    questions: [
      {
        question,
        header: "Choice",
        options: choices.map((label) => ({ label, description: label })),
      },
    ],
  }),
};

export class TalkingModel {
  /** All calls, in their order. */
  readonly calls: TalkingCall[] = [];
  /** How often a step was asked for. */
  readonly #asked = new Map<string, number>();
  readonly #key: string | null;
  #held = Promise.withResolvers<void>();
  readonly #server: Server = createServer((request, response) => void this.#answer(request, response));

  /** @param key the only one that it accepts. Absent: it accepts any */
  constructor(key: string | null = null) {
    this.#key = key;
  }

  /** @returns its base URL, which ends in /v1. */
  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", () => resolve()));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  /** Texts that are held go on. */
  goOn(): void {
    this.#held.resolve();
    this.#held = Promise.withResolvers<void>();
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? "";
    const wire = wireOf(path);
    const refuse = (status: number, body: object): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    // Counts of tokens.
    if (wire === null) return refuse(200, { input_tokens: 1, totalTokens: 1 });
    const body = (await json(request)) as Record<string, unknown>;
    const asked = wire.read(body, path);
    const key = keyOf(request);
    const isWelcome = this.#key === null || key === this.#key;
    const step = stepOf(asked);
    const status = !isWelcome ? 401 : asked.model === "broke" ? 402 : this.#refusal(step);
    this.calls.push({ ...asked, text: JSON.stringify(body), path, key, status });
    if (status !== 200)
      return refuse(
        status,
        wire.refusal(status, isWelcome ? wordsOf(status, step) : "Incorrect API key provided"),
      );
    const left = new Promise<void>((resolve) => response.once("close", resolve));
    const to = { response, model: asked.model, isStreamed: asked.isStreamed, id: String(this.calls.length) };
    const { think = "" } = step;
    const say = sayOf(step, asked.tools);
    const held = this.#held.promise;
    const pause = step.hold ? () => Promise.race([left, held]) : () => Promise.resolve();
    const calls = callsOf(step, { ...asked, id: to.id, words: JSON.stringify(body) });
    await wire.write(to, { think, say, calls }, pause);
  }

  #refusal(step: Step): number {
    const name = JSON.stringify(step);
    const before = this.#asked.get(name) ?? 0;
    this.#asked.set(name, before + 1);
    return step.refuse ?? (before < (step.fails ?? 0) ? 500 : 200);
  }
}

const keyOf = ({ headers, url = "" }: IncomingMessage): string => {
  const inQuery = new URL(url, "http://any").searchParams.get("key") ?? "";
  const given = [headers["x-api-key"], headers["x-goog-api-key"], headers.authorization].flat();
  const key = given.find((one) => one !== undefined) ?? inQuery;
  return key.replace(/^Bearer /, "");
};

/** The calls of tools. A tool that is not offered is called all the same: the runtime's answer says so. */
const callsOf = (
  { tools = [], run, write, plan, delegate, ask }: Step,
  { tools: offered, words, id: answer }: Asked & { readonly words: string; readonly id: string },
) => {
  const named = (name: string): OfferedTool => offered.find((tool) => tool.name === name) ?? { name };
  const shell = offered.find(({ name }) => name in SHELLS) ?? { name: "bash" };
  const planner = plannerIn(offered);
  const writer = offered.find(({ name }) => name in WRITERS) ?? { name: "write" };
  const wanted: readonly (readonly [OfferedTool, object | string])[] = [
    ...tools.map(([name, input]) => [named(name), input] as const),
    ...(run === undefined ? [] : [[shell, SHELLS[shell.name]?.(run) ?? {}] as const]),
    ...(write === undefined ? [] : [[writer, WRITERS[writer.name]?.(...write) ?? {}] as const]),
    ...(plan === undefined || planner === null
      ? []
      : (PLANNERS[planner.name]?.(plan, words) ?? []).map(([name, input]) => [named(name), input] as const)),
    ...(delegate === undefined
      ? []
      : offeredIn(offered, DELEGATES).map(
          (tool) => [tool, DELEGATES[tool.name]?.(promptOf(delegate)) ?? {}] as const,
        )),
    ...(ask === undefined
      ? []
      : offeredIn(offered, QUESTIONERS).map(
          (tool) => [tool, QUESTIONERS[tool.name]?.(...ask) ?? {}] as const,
        )),
  ];
  // A sub-agent's calls have ids of their own.
  return wanted.map(([tool, input], index) => ({ tool, input, id: `call_${answer}_${index}` }));
};

const plannerIn = (offered: readonly OfferedTool[]): OfferedTool | null =>
  offered.find(({ name }) => name in PLANNERS) ?? null;

/** The tools that are offered and known. At most one. */
const offeredIn = (offered: readonly OfferedTool[], known: object): readonly OfferedTool[] =>
  offered.filter(({ name }) => name in known).slice(0, 1);

/** The text of an answer. The model says a plan that it has no tool for, and that another tool is missing. */
const sayOf = ({ say, plan, delegate, ask }: Step, offered: readonly OfferedTool[]): string => {
  if (say !== undefined) return say;
  if (plan !== undefined && plannerIn(offered) === null) return plan;
  const needed = [
    ...(delegate === undefined ? [] : [DELEGATES]),
    ...(ask === undefined ? [] : [QUESTIONERS]),
  ];
  return needed.some((known) => offeredIn(offered, known).length === 0) ? "I have no tool for it." : "";
};

/** The step of this call: as many were done as the model has answered since the prompt. A call for a title has no tools. */
const stepOf = ({ said, tools }: Asked): Step => {
  const at = said.findLastIndex(({ by, text }) => by === "other" && stepsIn(text) !== null);
  const steps = stepsIn(said[at]?.text ?? "") ?? [];
  const done = answers(said.slice(at + 1));
  if (tools.length === 0 && steps.every(({ refuse, fails }) => refuse === undefined && fails === undefined))
    return { say: "A title" };
  return steps[done] ?? { say: "Done." };
};

/** How many answers of the model these are: parts in a row are one. */
const answers = (said: readonly Said[]): number =>
  said.filter(({ by }, index) => by === "model" && said[index - 1]?.by !== "model").length;

/** The last line of steps: a runtime may put several messages of people into one, and words of its own behind a line. */
const stepsIn = (text: string): readonly Step[] | null => {
  const line = text.split("\n").findLast((one) => one.startsWith('[{"'));
  if (line === undefined) return null;
  try {
    return JSON.parse(line.slice(0, line.lastIndexOf("]") + 1)) as readonly Step[];
  } catch {
    // It quotes a part of one.
    return null;
  }
};
