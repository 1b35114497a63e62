/** Finds the colours of code. It is loaded with the first code that has some. */
import { createJavaScriptRegexEngine } from "@shikijs/engine-javascript";
import { codeToTokensBase, createShikiPrimitive, getLastGrammarState } from "@shikijs/primitive";
import type { GrammarState, ShikiPrimitive, ThemeRegistrationAny } from "@shikijs/types";
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

/** Lines that are read before the browser may do something else. */
const STEP = 100;
/** A longer line stays plain. This bounds the time of a line, too. */
const LINE_CHARS = 1000;
/** None: on a busy machine, the first line of a language would lose its colours, because its rules are made ready then. */
const NO_TIME_LIMIT = 0;

const primitive: ShikiPrimitive = createShikiPrimitive({
  langs: [],
  themes: [THEME],
  // A rule that the browser's expressions cannot express is left out.
  engine: createJavaScriptRegexEngine({ forgiving: true }),
});

const known = new Map<Language, Promise<void>>();

const learn = (language: Language): Promise<void> => {
  const learning =
    known.get(language) ??
    grammarOf(language).then(({ default: grammar }) => primitive.loadLanguageSync(...grammar));
  known.set(language, learning);
  return learning;
};

/** Whether the colours are still wanted. */
type IsWanted = () => boolean;

// eslint-disable-next-line no-restricted-globals -- the browser's timer
const rest = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

/**
 * @param lines of one text, without their ends
 * @returns as many lines. null: they are not wanted any more
 */
export const colourLines = async (
  language: Language,
  lines: readonly string[],
  isWanted: IsWanted,
): Promise<readonly ColouredLine[] | null> => {
  await learn(language);
  const coloured: ColouredLine[] = [];
  let state: GrammarState | undefined;
  for (let from = 0; from < lines.length; from += STEP) {
    // oxlint-disable-next-line no-await-in-loop -- the browser draws and hears the reader between two steps
    await rest();
    if (!isWanted()) return null;
    const tokens = codeToTokensBase(primitive, lines.slice(from, from + STEP).join("\n"), {
      lang: language,
      theme: "looks",
      tokenizeMaxLineLength: LINE_CHARS,
      tokenizeTimeLimit: NO_TIME_LIMIT,
      ...(state !== undefined && { grammarState: state }),
    });
    state = getLastGrammarState(primitive, tokens);
    coloured.push(
      ...tokens.map((line) => line.map(({ content, color }) => ({ text: content, look: lookOf(color) }))),
    );
  }
  return coloured;
};
