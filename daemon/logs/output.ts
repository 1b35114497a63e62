/**
 * The output of the agent runtime, or of the setup command, on its way into the log: split into lines, cleaned,
 * redacted, and limited to the log's allowance. It comes from an untrusted program, at any speed.
 *
 *  U1 The program is never blocked: excess output is discarded unparsed, at almost no cost.
 *  U2 At each gap, a note says how much is missing.
 *  U3 A line is redacted as a whole, however many writes it came in, and cut only afterwards.
 */
import { StringDecoder } from "node:string_decoder";
import { storableText } from "../../src/domain/text.ts";
import type { Allowance } from "./allowance.ts";
import type { Log } from "./log.ts";
import type { Redactor } from "../../src/domain/secret/redactor.ts";

/**
 * After too much output, it is accepted again only when there is room for this much. Otherwise single lines would
 * alternate with notes.
 */
const ROOM_TO_GO_ON_BYTES = 256 * 1024;
/** The longest line in the log. */
const LINE_LENGTH = 8192;
/** How much discarded output is kept until more comes: a program's last output is the most useful. */
const LAST_WORDS_BYTES = 8192;
const NEWLINE = 0x0a;

/** Terminals' control sequences (ECMA-48: CSI, OSC and the other strings, two-character escapes). */
const ESCAPES =
  // oxlint-disable-next-line no-control-regex -- these characters are what it is about
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|[ -/]*[0-~])|\u009b[0-?]*[ -/]*[@-~]/gu;

export interface OutputOptions {
  readonly source: "runtime" | "setup";
  readonly redactor: Redactor;
  readonly log: Log;
  readonly allowance: Allowance;
  /** Gets every line that the log gets. */
  readonly onLine: (line: string) => void;
}

/** Both streams of one run of a program. */
export class RuntimeOutput {
  readonly #options: OutputOptions;
  readonly #streams = { stdout: new Lines(), stderr: new Lines() };
  /** How much was discarded since the last note. Null while output is accepted. */
  #leftOut: number | null = null;

  constructor(options: OutputOptions) {
    this.#options = options;
  }

  add(stream: "stdout" | "stderr", chunk: Buffer): void {
    const lines = this.#streams[stream];
    if (this.#leftOut !== null && this.#options.allowance.bytes < ROOM_TO_GO_ON_BYTES) {
      this.#leftOut += lines.skip(chunk);
      return;
    }
    const from = lines.passOver(chunk);
    if (this.#leftOut !== null) this.#leftOut += from;
    if (from === chunk.length) return;
    this.#sayLeftOut();
    for (const line of lines.take(chunk.subarray(from), LINE_LENGTH + this.#options.redactor.longest)) {
      if (this.#leftOut !== null) this.#leftOut += line.text.length + 1;
      else if (this.#options.allowance.bytes > 0) this.#keep(line);
      else this.#beginLeavingOut(line.text.length + 1);
    }
  }

  /** The program has ended: keeps an unfinished line, and the last discarded output. */
  flush(): void {
    const leavingOut = this.#leftOut !== null;
    this.#sayLeftOut();
    for (const lines of Object.values(this.#streams)) {
      for (const text of leavingOut ? lines.lastWords : []) this.#keep({ text, broken: false });
      if (lines.rest !== "") this.#keep({ text: lines.rest, broken: true });
    }
  }

  #keep({ text, broken }: Line): void {
    const { source, log, onLine, redactor } = this.#options;
    // Before the redaction: removing a NUL or an escape after it could join two parts into a secret that was not
    // recognised.
    const clean = storableText(text.replace(/\r$/, "")).replaceAll(ESCAPES, "");
    const safe = broken ? redactor.redactBroken(clean) : clean;
    const beginning = redactor.redactBeginning(safe, LINE_LENGTH);
    const line =
      safe.length > LINE_LENGTH ? `${beginning.toWellFormed()} [the rest of the line is cut]` : beginning;
    log("output", { source, line });
    onLine(line);
  }

  #beginLeavingOut(bytes: number): void {
    this.#leftOut = bytes;
    this.#options.log("output is dropped because it is faster than 1 MiB/s");
  }

  #sayLeftOut(): void {
    if (this.#leftOut === null) return;
    this.#options.log("output was dropped", { bytes: this.#leftOut });
    this.#leftOut = null;
  }
}

/** `broken`: the line continues after this text. */
interface Line {
  readonly text: string;
  readonly broken: boolean;
}

const NOTHING = Buffer.alloc(0);

/** Splits one stream into lines. */
class Lines {
  #decoder = new StringDecoder("utf8");
  #rest = "";
  /** The current line is too long, or began in discarded output: the next line is the next to keep. */
  #skipping = false;
  #thrown: Buffer = NOTHING;
  /** Whether the kept part begins with a whole line. */
  #thrownFromStart = false;

  /** The text after the last line end. */
  get rest(): string {
    return this.#rest;
  }

  /** The last whole lines of the discarded output. */
  get lastWords(): readonly string[] {
    const lines = this.#thrown.toString("utf8").split("\n");
    return lines.slice(this.#thrownFromStart ? 0 : 1, -1);
  }

  /** How much of a chunk belongs to a skipped line. */
  passOver(chunk: Buffer): number {
    if (!this.#skipping) return 0;
    const end = chunk.indexOf(NEWLINE);
    if (end === -1) return chunk.length;
    this.#skipping = false;
    return end + 1;
  }

  /** The lines that end in this chunk, and one that exceeds `maxLength` without an end. */
  take(chunk: Buffer, maxLength: number): Line[] {
    this.#thrown = NOTHING;
    const texts = (this.#rest + this.#decoder.write(chunk)).split("\n");
    this.#rest = texts.pop() ?? "";
    const lines = texts.map((text) => ({ text, broken: false }));
    if (this.#rest.length <= maxLength) return lines;
    lines.push({ text: this.#rest, broken: true });
    this.#forgetLine();
    return lines;
  }

  /** Discards a chunk, and the line that it belongs to. @returns how many bytes were discarded */
  skip(chunk: Buffer): number {
    const thrownBytes = this.#rest.length + chunk.length;
    const isFirst = this.#thrown.length === 0;
    const fromStart = isFirst ? this.#rest === "" && !this.#skipping : this.#thrownFromStart;
    const former = chunk.length < LAST_WORDS_BYTES ? this.#thrown : NOTHING;
    // A copy, because a small slice would keep the whole chunk in memory.
    const all = Buffer.concat([former, chunk.subarray(-LAST_WORDS_BYTES)]);
    this.#thrown = all.subarray(-LAST_WORDS_BYTES);
    this.#thrownFromStart = fromStart && former.length + chunk.length <= LAST_WORDS_BYTES;
    this.#forgetLine();
    return thrownBytes;
  }

  #forgetLine(): void {
    this.#rest = "";
    this.#decoder = new StringDecoder("utf8");
    this.#skipping = true;
  }
}
