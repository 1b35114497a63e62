/** Which model a call is for: the one that its request names, or else the one that its answer names. */

/** How much of a request, and of an answer, is looked at. */
export const NAMED_WITHIN = 64 * 1024;
const MODEL_MAX = 200;

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/g;
const ANSWERED = /"(?:model|modelVersion)": ?"([^"\\]{1,200})"/;

const tokenText = (token: string | undefined): string | null => {
  if (token?.startsWith('"') !== true) return null;
  const text = JSON.parse(token) as string;
  return text !== "" && text.length <= MODEL_MAX ? text : null;
};

/** The field `model` of the object itself, not of one inside it. @param start of the request's JSON, which may be cut */
export const requestedModel = (start: string): string | null => {
  let depth = 0;
  const tokens = start.match(TOKENS) ?? [];
  for (const [place, token] of tokens.entries()) {
    if (token === "{" || token === "[") depth += 1;
    if (token === "}" || token === "]") depth -= 1;
    if (depth !== 1 || token !== '"model"' || tokens[place + 1] !== ":") continue;
    try {
      return tokenText(tokens[place + 2]);
    } catch {
      return null;
    }
  }
  return null;
};

/** @param start of the answer */
export const answeredModel = (start: string): string | null => ANSWERED.exec(start)?.[1] ?? null;
