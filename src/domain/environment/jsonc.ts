/**
 * Reads JSON with comments and trailing commas. Each fault has its place. In addition to what the format forbids, this
 * file refuses what programs read differently: a byte order mark, a field twice, and a field `__proto__`.
 */
import { isUtf8 } from "node:buffer";
import { parse, tokenize, type MemberNode, type ObjectNode, type ValueNode } from "@humanwhocodes/momoa";
import * as Result from "effect/Result";

/** Lines and columns count from 1. */
export interface JsoncPlace {
  readonly line: number;
  readonly column: number;
}

export interface JsoncField {
  readonly value: Jsonc;
  /** Where the field's name begins. */
  readonly place: JsoncPlace;
}

/** In the order of the file. */
export type JsoncObject = ReadonlyMap<string, JsoncField>;

/** An object is a map: so no name of a field means anything to the language. */
export type Jsonc = null | boolean | number | string | readonly Jsonc[] | JsoncObject;

/** The reason is a sentence. */
export interface JsoncFault {
  readonly reason: string;
  readonly place: JsoncPlace | null;
}

/** Objects and lists within each other. The parser calls itself for each. */
const DEPTH_MAX = 32;
const BEGIN: JsoncPlace = { line: 1, column: 1 };

class Refused extends Error {
  readonly place: JsoncPlace;

  constructor(reason: string, { line, column }: JsoncPlace) {
    super(reason);
    this.place = { line, column };
  }
}

/**
 * Reads a document that is an object. Never throws. The caller bounds the size.
 * @param bytes the whole file
 */
export const parseJsonc = (bytes: Uint8Array): Result.Result<JsoncObject, JsoncFault> => {
  if (!isUtf8(bytes)) return Result.fail({ reason: "The file is not UTF-8 text.", place: null });
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  try {
    if (text.startsWith("\ufeff"))
      throw new Refused("The file begins with a byte order mark. Save it as UTF-8 without one.", BEGIN);
    if (text.trim() === "") throw new Refused("The file is empty.", BEGIN);
    checkDepth(text);
    const { body } = parse(text, { mode: "jsonc", allowTrailingCommas: true });
    if (body.type !== "Object") throw new Refused("The file must have one object, { … }.", body.loc.start);
    return Result.succeed(objectFields(body, text));
  } catch (error) {
    return Result.fail(toFault(error));
  }
};

/** The parser's names of signs. */
const SIGNS: Readonly<Record<string, string>> = {
  LBrace: "`{`",
  RBrace: "`}`",
  LBracket: "`[`",
  RBracket: "`]`",
  Comma: "`,`",
  Colon: "`:`",
};

/** The parser's errors have a place, and repeat it at the end of their message. */
const toFault = (error: unknown): JsoncFault => {
  if (error instanceof Refused) return { reason: error.message, place: error.place };
  if (!(error instanceof Error) || !("line" in error) || !("column" in error))
    return { reason: "The file cannot be read.", place: null };
  const reason = error.message
    .replace(/ found\. \(\d+:\d+\)$/, "")
    .replace(/token (\w+)$/, (token, name: string) => SIGNS[name] ?? token);
  return {
    reason: `The file is not valid JSON with comments: ${reason}.`,
    place: { line: Number(error.line), column: Number(error.column) },
  };
};

const checkDepth = (text: string): void => {
  let depth = 0;
  for (const { type, loc } of tokenize(text, { mode: "jsonc" })) {
    if (type === "LBrace" || type === "LBracket") depth += 1;
    if (type === "RBrace" || type === "RBracket") depth -= 1;
    if (depth > DEPTH_MAX)
      throw new Refused(`Objects and lists are nested more than ${DEPTH_MAX} deep.`, loc.start);
  }
};

const memberName = ({ name }: MemberNode): string => (name.type === "String" ? name.value : name.name);

const objectFields = ({ members }: ObjectNode, text: string): JsoncObject => {
  const fields = new Map<string, JsoncField>();
  for (const member of members) {
    const name = memberName(member);
    const { start } = member.name.loc;
    const former = fields.get(name);
    if (former !== undefined)
      throw new Refused(`The field ${quote(name)} is already on line ${former.place.line}.`, start);
    if (name === "__proto__") throw new Refused("A field cannot have the name `__proto__`.", start);
    const place = { line: start.line, column: start.column };
    fields.set(name, { value: toJsonc(member.value, text), place });
  }
  return fields;
};

const NAME_SHOWN = 80;

const quote = (name: string): string => JSON.stringify(name.slice(0, NAME_SHOWN).toWellFormed());

// eslint-disable-next-line no-control-regex -- the point
const CONTROL = /[\0-\x1f]/;

const toJsonc = (node: ValueNode, text: string): Jsonc => {
  switch (node.type) {
    case "Object":
      return objectFields(node, text);
    case "Array":
      return node.elements.map(({ value }) => toJsonc(value, text));
    case "Null":
      return null;
    case "String":
      // The parser accepts them, and editors do not.
      if (CONTROL.test(text.slice(node.loc.start.offset, node.loc.end.offset)))
        throw new Refused("A text has a line break or a control character. Write it as \\n.", node.loc.start);
      if (!node.value.isWellFormed())
        throw new Refused("A text has half of a surrogate pair.", node.loc.start);
      return node.value;
    case "Number":
    case "Boolean":
      return node.value;
    case "NaN":
    case "Infinity":
      throw new Refused("This is no number of JSON.", node.loc.start);
  }
};
