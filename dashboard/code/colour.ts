/**
 * Finds the colours of code. It is loaded with the first code that has some.
 *
 * A grammar's rules are made ready when a line first needs them. For a line of TypeScript that takes 100 ms and more, so a step ends within a
 * line, too: the engine throws `StepOver`, and the next step reads the line again with the rules that are ready by then.
 */
import { createJavaScriptRegexEngine } from "@shikijs/engine-javascript";
import { codeToTokensBase, createShikiPrimitive, getLastGrammarState } from "@shikijs/primitive";
import type { GrammarState, RegexEngine, ShikiPrimitive, ThemeRegistrationAny } from "@shikijs/types";
import { grammarOf, type Language } from "./languages.ts";

/** A part of a line. Its look is a class of code.css, or "" for plain text. */
export interface Piece {
  readonly text: string;
  readonly look: string;
}

export type ColouredLine = readonly Piece[];

/** The scopes of grammars for each look. The later one wins where two are as exact. */
const LOOKS: readonly (readonly [look: string, scopes: readonly string[]])[] = [
  ["comment", ["comment", "punctuation.definition.comment"]],
  ["string", ["string", "punctuation.definition.string", "markup.inline.raw", "markup.inserted"]],
  ["number", ["constant", "variable.language", "support.constant"]],
  ["keyword", ["keyword", "storage", "markup.heading", "meta.diff.range"]],
  ["plain", ["keyword.operator", "storage.type.java", "keyword.operator.assignment"]],
  ["function", ["entity.name.function", "support.function", "meta.function-call.generic"]],
  [
    "type",
    ["entity.name.type", "entity.name.class", "support.type", "support.class", "entity.name.namespace"],
  ],
  ["tag", ["entity.name.tag", "entity.name.section", "support.type.property-name", "markup.deleted"]],
  ["attribute", ["entity.other.attribute-name", "variable.parameter"]],
];

/** The library knows looks by their colour only, so each has a number for one. */
const colourOf = (index: number): string => `#${index.toString(16).padStart(6, "0")}`;

const lookOf = (colour: string | undefined): string => {
  const [look] = LOOKS[Number.parseInt(colour?.slice(1) ?? "", 16) - 1] ?? ["plain"];
  return look === "plain" ? "" : `code-${look}`;
};

const THEME: ThemeRegistrationAny = {
  name: "looks",
  type: "light",
  fg: colourOf(0),
  bg: colourOf(0),
  settings: [
    { settings: { foreground: colourOf(0), background: colourOf(0) } },
    ...LOOKS.map(([, scope], index) => ({
      scope: [...scope],
      settings: { foreground: colourOf(index + 1) },
    })),
  ],
};

/** How long a step may take before the browser may do something else. A frame has 16. */
const STEP_MS = 8;
/** A longer line stays plain. This bounds the time of a line, too. */
const LINE_CHARS = 1000;
/** None: on a busy machine, the first line of a language would lose its colours, because its rules are made ready then. */
const NO_TIME_LIMIT = 0;

class StepOver extends Error {}

/** The step that is under way. @property hasReadied whether it has made a rule ready: each does, so that a line comes to its end. */
interface Step {
  readonly isOver: () => boolean;
  hasReadied: boolean;
}
let step: Step = { isOver: () => false, hasReadied: false };

// A rule that the browser's expressions cannot express is left out.
const engine = createJavaScriptRegexEngine({ forgiving: true });
/** The engine keeps what it made of each. */
const ready = new Set<string | RegExp>();

const makeReady = (rule: string | RegExp): void => {
  if (ready.has(rule)) return;
  if (step.hasReadied && step.isOver()) throw new StepOver();
  engine.createScanner([rule]);
  ready.add(rule);
  step.hasReadied = true;
};

const steppingEngine: RegexEngine = {
  createString: engine.createString,
  createScanner: (rules) => {
    for (const rule of rules) makeReady(rule);
    return engine.createScanner(rules);
  },
};

const primitive: ShikiPrimitive = createShikiPrimitive({
  langs: [],
  themes: [THEME],
  engine: steppingEngine,
});

const known = new Map<Language, Promise<void>>();

const learn = (language: Language): Promise<void> => {
  const learning =
    known.get(language) ??
    grammarOf(language).then(({ default: grammar }) => primitive.loadLanguageSync(...grammar));
  known.set(language, learning);
  return learning;
};

interface Demand {
  /** Whether the colours are still wanted. */
  readonly isWanted: () => boolean;
  /** In ms. */
  readonly clock?: () => number;
}

// eslint-disable-next-line no-restricted-globals -- the browser's timer
const rest = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

interface Reading {
  readonly language: Language;
  readonly lines: readonly string[];
  readonly coloured: ColouredLine[];
  state: GrammarState | undefined;
}

/** Reads the next line. @throws StepOver if its rules are not ready; then nothing was read */
const readOn = (reading: Reading): void => {
  const { language, lines, coloured, state } = reading;
  const tokens = codeToTokensBase(primitive, lines[coloured.length] ?? "", {
    lang: language,
    theme: "looks",
    tokenizeMaxLineLength: LINE_CHARS,
    tokenizeTimeLimit: NO_TIME_LIMIT,
    ...(state !== undefined && { grammarState: state }),
  });
  reading.state = getLastGrammarState(primitive, tokens);
  coloured.push(
    ...tokens.map((line) => line.map(({ content, color }) => ({ text: content, look: lookOf(color) }))),
  );
};

/** Reads lines until the step is over. */
const takeStep = (reading: Reading, clock: () => number): void => {
  const end = clock() + STEP_MS;
  step = { isOver: () => clock() >= end, hasReadied: false };
  try {
    do readOn(reading);
    while (reading.coloured.length < reading.lines.length && !step.isOver());
  } catch (error) {
    if (!(error instanceof StepOver)) throw error;
  }
};

/**
 * @param lines of one text, without their ends
 * @returns as many lines. null: they are not wanted any more
 */
export const colourLines = async (
  language: Language,
  lines: readonly string[],
  { isWanted, clock = () => performance.now() }: Demand,
): Promise<readonly ColouredLine[] | null> => {
  await learn(language);
  const reading: Reading = { language, lines, coloured: [], state: undefined };
  while (reading.coloured.length < lines.length) {
    // oxlint-disable-next-line no-await-in-loop -- the browser draws and hears the reader between two steps
    await rest();
    if (!isWanted()) return null;
    takeStep(reading, clock);
  }
  return reading.coloured;
};
