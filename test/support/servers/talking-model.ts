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
  /** Waits behind the first piece of its text, until the caller leaves. */
  readonly hold?: true;
  /** Names and arguments of tools. */
  readonly tools?: readonly (readonly [string, object])[];
  /** A command for the runtime's own shell, whatever it calls it. */
  readonly run?: string;
  /** A file for the runtime's own way to write one, and its text. */
  readonly write?: readonly [path: string, text: string];
  /** A plan, by the runtime's own way to propose one. */
  readonly plan?: string;
  /** The status of a refusal. */
  readonly refuse?: number;
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

const wordsOf = (status: number): string =>
  `${status === 404 ? "The model does not exist: " : ""}refused as the prompt says`;

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

export class TalkingModel {
  /** All calls, in their order. */
  readonly calls: TalkingCall[] = [];
  /** How often a step was asked for. */
  readonly #asked = new Map<string, number>();
  readonly #key: string | null;
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
      return refuse(status, wire.refusal(status, isWelcome ? wordsOf(status) : "Incorrect API key provided"));
    const left = new Promise<void>((resolve) => response.once("close", resolve));
    const to = { response, model: asked.model, isStreamed: asked.isStreamed, id: String(this.calls.length) };
    const { think = "", plan = "" } = step;
    const say = step.say ?? (plannerIn(asked.tools) === null ? plan : "");
    const pause = step.hold ? () => left : () => Promise.resolve();
    await wire.write(
      to,
      { think, say, calls: callsOf(step, { ...asked, words: JSON.stringify(body) }) },
      pause,
    );
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
  { tools = [], run, write, plan }: Step,
  { tools: offered, said, words }: Asked & { readonly words: string },
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
  ];
  return wanted.map(([tool, input], index) => ({ tool, input, id: `call_${said.length}_${index}` }));
};

const plannerIn = (offered: readonly OfferedTool[]): OfferedTool | null =>
  offered.find(({ name }) => name in PLANNERS) ?? null;

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
