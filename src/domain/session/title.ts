/** Titles of sessions without a name of a person, of a trigger or of the agent's runtime. */
import { firstSentence } from "../conversation/row-texts.ts";

/** In code points. */
const TITLE_MAX = 60;

/** The first sentence of a prompt, cut where it is long. Null: the prompt has no words. */
export const promptTitle = (prompt: string): string | null => {
  const sentence = firstSentence(prompt);
  const points = [...(sentence ?? "")];
  return points.length > TITLE_MAX ? `${points.slice(0, TITLE_MAX).join("").trimEnd()}…` : sentence;
};
