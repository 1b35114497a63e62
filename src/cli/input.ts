/** Input from standard input, from files, and from a person at a terminal. */
import { readFileSync, statSync } from "node:fs";
import { createInterface } from "node:readline";
import type { ReadStream } from "node:tty";
import { Failure, usageFailure } from "./failure.ts";
import { safeLine } from "./terminal.ts";
import { quantity } from "../domain/counted.ts";

/** More than any input of the API. An endless device or pipe is not read any further. */
const BYTES_MAX = 2 * 1024 * 1024;
/** A shell's exit code for a program that an interrupt ended. */
export const INTERRUPTED = 130;

const CTRL_C = "\u0003";
const ESCAPE = "\u001b";
const ENDING = new Set(["\r", "\n", "\u0004"]);
const ERASING = new Set(["\u007f", "\b"]);

const decode = (bytes: Buffer, source: string): string => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw usageFailure(`${source} is not UTF-8 text.`);
  }
};

const tooLong = (source: string, max: number = BYTES_MAX) =>
  usageFailure(`${source} is longer than ${quantity(max, "byte")}.`);

const WHY_UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  EACCES: "permission denied",
  EISDIR: "it is a directory",
};

/** @throws Failure that names the file */
const readContent = (path: string, source: string, max: number): Uint8Array => {
  try {
    if (statSync(path).size > max) throw tooLong(source, max);
    return readFileSync(path);
  } catch (error) {
    if (error instanceof Failure) throw error;
    const { code = "no reason given" } = error as NodeJS.ErrnoException;
    throw usageFailure(`${source} cannot be read: ${WHY_UNREADABLE[code] ?? code}.`);
  }
};

export class Input {
  readonly #open: () => NodeJS.ReadStream;
  readonly #prompt: (text: string) => void;
  #stream: NodeJS.ReadStream | null = null;
  #chunks: AsyncIterator<Buffer> | null = null;
  /** Read but not yet used. */
  #rest = "";

  /** @param open standard input, which is not opened before it is needed @param prompt writes to the person */
  constructor(open: () => NodeJS.ReadStream, prompt: (text: string) => void) {
    this.#open = open;
    this.#prompt = prompt;
  }

  get isTerminal(): boolean {
    return this.#stdin.isTTY;
  }

  /** All of standard input, as text. */
  async all(): Promise<string> {
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of this.#stdin as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > BYTES_MAX) throw tooLong("Standard input");
      chunks.push(chunk);
    }
    return decode(Buffer.concat(chunks), "Standard input");
  }

  /**
   * A file's exact text. `-` is standard input.
   *
   * @param option the option that named the file, such as `--file`, for the error
   */
  async file(path: string, option: string): Promise<string> {
    if (path === "-") return await this.all();
    const source = `The file ${safeLine(path)} of ${option}`;
    return decode(Buffer.from(readContent(path, source, BYTES_MAX)), source);
  }

  /** A secret: a file's text, what a person types unseen, or all of standard input. @param option as for `file` */
  async secret(question: string, path: string | undefined, option: string): Promise<string> {
    if (path !== undefined) return await this.file(path, option);
    return this.isTerminal ? await this.hiddenLine(question) : await this.all();
  }

  /** A file's bytes, at most `max` of them. @param option as for `file` */
  bytes(path: string, max: number, option: string): Uint8Array {
    return readContent(path, `The file ${safeLine(path)} of ${option}`, max);
  }

  /** The next line. A person gets a prompt for it. */
  async line(question: string): Promise<string> {
    return this.isTerminal ? await this.#typed(question, true) : await this.#readLine();
  }

  /** The next line. The typed characters are not shown. */
  async hiddenLine(question: string): Promise<string> {
    return this.isTerminal ? await this.#typed(question, false) : await this.#readLine();
  }

  /**
   * Each line as it comes, one after the other, until the end of the input or until `interrupt` wants to leave.
   * `interrupt` hears Ctrl-C at a terminal, and `typing` each key there, with the line so far and whether it is entered. If it answers
   * yes, the cursor has left the line, which is shown again where the cursor is.
   */
  async lines(hear: {
    readonly line: (text: string) => Promise<void>;
    readonly interrupt: () => Promise<boolean>;
    readonly typing?: (line: string, isEntered: boolean) => boolean;
  }): Promise<void> {
    const { typing } = hear;
    const reader = createInterface({
      input: this.#stdin,
      terminal: this.isTerminal,
      output: process.stderr,
      prompt: "",
    });
    if (typing !== undefined && this.isTerminal)
      this.#stdin.on("keypress", (_, { name }: { readonly name?: string }) => {
        if (typing(reader.line, name === "return" || name === "enter")) reader.prompt(true);
      });
    reader.on("SIGINT", () => void hear.interrupt().then((leaves) => leaves && reader.close()));
    for await (const text of reader) await hear.line(text);
  }

  /** Standard input itself, for a command that passes every byte on. */
  raw(): NodeJS.ReadStream {
    return this.#stdin;
  }

  /** Lets the program end while the other end of the pipe is still open. */
  close(): void {
    this.#stream?.destroy();
  }

  get #stdin(): NodeJS.ReadStream {
    this.#stream ??= this.#open();
    return this.#stream;
  }

  /** Reads more. False at the end. */
  async #more(): Promise<boolean> {
    this.#chunks ??= (this.#stdin as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
    const { done, value } = await this.#chunks.next();
    if (done !== true) this.#rest += value.toString();
    if (this.#rest.length > BYTES_MAX) throw tooLong("Standard input");
    return done !== true;
  }

  async #readLine(): Promise<string> {
    // oxlint-disable-next-line no-await-in-loop -- a line may come in pieces
    while (!this.#rest.includes("\n") && (await this.#more()));
    const [line = "", ...others] = this.#rest.split("\n");
    this.#rest = others.join("\n");
    return line.replace(/\r$/, "");
  }

  /** A line typed at a terminal. Keys come one by one, and this program shows them. */
  async #typed(question: string, isShown: boolean): Promise<string> {
    const terminal = this.#stdin as ReadStream;
    terminal.setRawMode(true);
    this.#prompt(question);
    try {
      return await this.#keys(isShown);
    } finally {
      terminal.setRawMode(false);
      this.#prompt("\n");
    }
  }

  async #keys(isShown: boolean): Promise<string> {
    let line = "";
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- keys come one after the other
      if (this.#rest === "" && !(await this.#more())) return line;
      const [key = ""] = this.#rest;
      this.#rest = this.#rest.slice(key.length);
      if (ENDING.has(key)) return line;
      if (key === CTRL_C) process.exit(INTERRUPTED);
      // A key that is not text, such as an arrow, comes as a sequence in one piece.
      if (key === ESCAPE) this.#rest = "";
      else if (ERASING.has(key)) {
        if (isShown && line !== "") this.#prompt("\b \b");
        line = [...line].slice(0, -1).join("");
      } else if (key >= " ") {
        line += key;
        if (isShown) this.#prompt(key);
      }
    }
  }
}
