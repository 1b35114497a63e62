/**
 * The instructions of a Dockerfile with their lines, as far as they are needed to name a failing line, and to refuse a
 * file that is none. The builder parses the file again by its own rules.
 */

export interface Instruction {
  /** Counts from 1. */
  readonly line: number;
  /** In upper case. */
  readonly keyword: string;
  /** The instruction on one line, at most INSTRUCTION_MAX characters. */
  readonly text: string;
}

/** One stage: FROM and its instructions. */
export type Stage = readonly [Instruction, ...Instruction[]];

export interface Dockerfile {
  readonly kind: "stages";
  /** The ARGs before the first FROM. */
  readonly globals: readonly Instruction[];
  readonly stages: readonly Stage[];
}

export type Parsed = Dockerfile | { readonly kind: "error"; readonly line: number; readonly problem: string };

/** The longest Dockerfile that is accepted, in bytes. */
export const DOCKERFILE_BYTES_MAX = 1024 * 1024;
const INSTRUCTION_MAX = 500;

const KEYWORDS = new Set(
  (
    "ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL STOPSIGNAL USER " +
    "VOLUME WORKDIR"
  ).split(" "),
);
/** Only these read here-documents. */
const HERE_DOCUMENTS = new Set(["ADD", "COPY", "RUN"]);
/** Its word ends at a line of its own, so that another `<<` is none. */
const HERE = /<<-?\s*(?:"([^"]+)"|'([^']+)'|([^\s"'<>|&;()]+))/g;

/** `# escape=` in the directives before everything else. The default is the backslash. */
const escapeCharacter = (lines: readonly string[]): string => {
  for (const line of lines) {
    const directive = /^#\s*([a-z]+)\s*=\s*(\S+)\s*$/i.exec(line.trim());
    if (directive === null) break;
    if (directive[1]?.toLowerCase() === "escape") return directive[2] === "`" ? "`" : "\\";
  }
  return "\\";
};

const isComment = (line: string): boolean => line.trimStart().startsWith("#");

interface ReadInstruction {
  readonly instruction: Instruction;
  /** The index of the line behind it. */
  readonly next: number;
  readonly hasHereDocument: boolean;
}

/** Reads one instruction that begins at `start`. */
const readInstruction = (lines: readonly string[], start: number, escape: string): ReadInstruction => {
  const parts: string[] = [];
  let next = start;
  for (let more = true; more && next < lines.length; next += 1) {
    const line = (lines[next] ?? "").trim();
    // Comments and empty lines within an instruction are skipped.
    if (next > start && (line === "" || isComment(line))) continue;
    more = line.endsWith(escape);
    parts.push((more ? line.slice(0, -1) : line).trim());
  }
  const text = parts.join(" ").trim();
  const keyword = (/^\S+/.exec(text)?.[0] ?? "").toUpperCase();
  let hasHereDocument = false;
  const innerKeyword = keyword === "ONBUILD" ? (/^\S+\s+(\S+)/.exec(text)?.[1] ?? "").toUpperCase() : keyword;
  if (HERE_DOCUMENTS.has(innerKeyword)) {
    for (const [, double, single, bare] of text.matchAll(HERE)) {
      const word = double ?? single ?? bare;
      const end = lines.findIndex((line, index) => index >= next && line.replace(/^\t+/, "") === word);
      if (end === -1) continue;
      next = end + 1;
      hasHereDocument = true;
    }
  }
  const instruction = { line: start + 1, keyword, text: text.slice(0, INSTRUCTION_MAX) };
  return { instruction, next, hasHereDocument };
};

const splitLines = (source: string): readonly string[] => source.replace(/^\uFEFF/, "").split(/\r?\n/);

const readInstructions = (lines: readonly string[]): readonly ReadInstruction[] => {
  const escape = escapeCharacter(lines);
  const instructions: ReadInstruction[] = [];
  for (let at = 0; at < lines.length;) {
    const line = (lines[at] ?? "").trim();
    if (line === "" || isComment(line)) {
      at += 1;
      continue;
    }
    const read = readInstruction(lines, at, escape);
    instructions.push(read);
    at = read.next;
  }
  return instructions;
};

const instructionProblem = ({ keyword, text }: Instruction, stages: number): string | null => {
  if (!KEYWORDS.has(keyword)) return `unknown instruction: ${keyword.slice(0, 40)}`;
  if (text.length === keyword.length) return `${keyword} needs an argument`;
  if (stages === 0 && keyword !== "FROM" && keyword !== "ARG")
    return `${keyword} is before the first FROM, where only ARG can be`;
  return null;
};

/** Parses a Dockerfile. The first problem wins. */
export const parseDockerfile = (source: string): Parsed => {
  const stages: [Instruction, ...Instruction[]][] = [];
  const globals: Instruction[] = [];
  for (const { instruction } of readInstructions(splitLines(source))) {
    const problem = instructionProblem(instruction, stages.length);
    if (problem !== null) return { kind: "error", line: instruction.line, problem };
    if (instruction.keyword === "FROM") stages.push([instruction]);
    else (stages.at(-1) ?? globals).push(instruction);
  }
  if (stages.length === 0) return { kind: "error", line: 1, problem: "there is no FROM" };
  return { kind: "stages", globals, stages };
};

/** The line of the first instruction with a here-document. Null without one. */
export const hereDocumentLine = (source: string): number | null =>
  readInstructions(splitLines(source)).find(({ hasHereDocument }) => hasHereDocument)?.instruction.line ??
  null;

/** The image that a FROM names, without its flags. */
export const fromReference = ({ text }: Instruction): string =>
  text
    .split(/\s+/)
    .slice(1)
    .find((word) => !word.startsWith("--")) ?? "";
