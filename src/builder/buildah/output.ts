/**
 * Reads buildah's output: which step runs, what it writes, and how it ended. Steps write to the same stream, so a step can
 * print lines that look like buildah's. A line counts as the start of a step only if it is the one that comes next in the
 * Dockerfile. A step that prints exactly that line moves the step's number, in its own project's log.
 */
import { stripVTControlCharacters } from "node:util";
import { TAIL_BYTES } from "../../domain/environment/build-failure.ts";
import { type BuildEvent } from "../port.ts";
import type { Instruction, Stage } from "../../domain/environment/dockerfile.ts";

/** A longer line is cut. */
const LINE_MAX = 8192;

const STEP = /^(?:\[(\d+)\/\d+\] )?STEP (\d+)\/(\d+): ?(.*)$/;

/** Control characters, except tabs: they could act on a terminal that shows the text. */
// eslint-disable-next-line no-control-regex -- the point
const CONTROL = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u200E\u200F\u202A-\u202E\u2066-\u2069]/g;

/** Plain text of one line. */
export const plain = (line: string): string => {
  // The part after the last carriage return is what a terminal shows of a progress bar.
  const visible = line.replace(/\r+$/, "").split("\r").at(-1) ?? "";
  return stripVTControlCharacters(visible).replaceAll(CONTROL, "");
};

/** The end of a text within a number of bytes, from the start of a line or, in a longer line, of a character. */
export const textTail = (text: string, bytes = TAIL_BYTES): string => {
  const whole = Buffer.from(text);
  if (whole.length <= bytes) return text;
  const end = whole
    .subarray(-bytes)
    .toString("utf8")
    .replace(/^\uFFFD+/, "");
  const firstLine = end.indexOf("\n");
  return firstLine === -1 || firstLine === end.length - 1 ? end : end.slice(firstLine + 1);
};

/** A step that began. */
export interface BegunStep {
  /** Counts from 1 over all stages. */
  readonly step: number;
  readonly instruction: Instruction;
}

export class BuildOutput {
  readonly #stages: readonly Stage[];
  readonly #emit: (event: BuildEvent) => void;
  #rest = "";
  #stage = 0;
  /** The number of the running step in its stage, as buildah counts. */
  #inStage = 0;
  #tail = "";
  #current: BegunStep | null = null;
  readonly #decoder = new TextDecoder();

  constructor(stages: readonly Stage[], emit: (event: BuildEvent) => void) {
    this.#stages = stages;
    this.#emit = emit;
  }

  /** The step that runs, or ran last. Null before the first. */
  get current(): BegunStep | null {
    return this.#current;
  }

  /** The end of the current step's output. */
  get tail(): string {
    return textTail(this.#tail);
  }

  /** Takes more output. */
  write(chunk: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split("\n");
    this.#rest = lines.pop() ?? "";
    // A line without an end must not grow for ever.
    if (this.#rest.length > LINE_MAX) lines.push(this.#rest);
    if (this.#rest.length > LINE_MAX) this.#rest = "";
    this.#take(lines);
  }

  /** Adds a line of the service to the step's output. */
  note(line: string): void {
    this.#log(`${plain(line).slice(0, LINE_MAX)}\n`);
  }

  /** Takes the text after the last line break. */
  end(): void {
    if (this.#rest !== "") this.#take([this.#rest]);
    this.#rest = "";
  }

  #take(lines: readonly string[]): void {
    let text = "";
    for (const line of lines) {
      const clean = plain(line).slice(0, LINE_MAX);
      const step = this.#begins(clean);
      if (step === null) {
        text += `${clean}\n`;
        continue;
      }
      this.#log(text);
      text = "";
      this.#tail = "";
      this.#current = step;
      const { line: at, text: instruction } = step.instruction;
      this.#emit({ kind: "step", step: step.step, line: at, instruction });
    }
    this.#log(text);
  }

  #log(text: string): void {
    if (text === "") return;
    this.#tail = (this.#tail + text).slice(-2 * TAIL_BYTES);
    this.#emit({ kind: "log", text });
  }

  #begins(line: string): BegunStep | null {
    const [, stageNumber = "1", stepNumber = "", count = "", text = ""] = STEP.exec(line) ?? [];
    if (stepNumber === "") return null;
    const [stage, inStage] = [Number(stageNumber), Number(stepNumber)];
    const follows =
      stage === this.#stage ? inStage === this.#inStage + 1 : stage > this.#stage && inStage === 1;
    const nextStage = this.#stages[stage - 1];
    if (!follows || nextStage === undefined) return null;
    const instruction = instructionAt(nextStage, inStage, Number(count));
    if (instruction.keyword !== (/^\S+/.exec(text)?.[0] ?? "").toUpperCase() && !isTriggered(instruction))
      return null;
    this.#stage = stage;
    this.#inStage = inStage;
    return { step: (this.#current?.step ?? 0) + 1, instruction };
  }
}

const isTriggered = ({ keyword }: Instruction): boolean => keyword === "FROM";

/** A base image can add steps after FROM (ONBUILD). They get FROM's line. */
const instructionAt = (stage: Stage, inStage: number, count: number): Instruction => {
  const addedSteps = Math.max(0, count - stage.length);
  return stage[inStage - 1 - addedSteps] ?? stage[0];
};
