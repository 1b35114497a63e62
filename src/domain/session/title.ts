/** Titles of sessions. A name is a person's, or the runtime's own title. */
import { firstSentence } from "../conversation/row-texts.ts";

/** In code points. */
const TITLE_MAX = 60;

/** The first sentence of a prompt, cut where it is long. Null if the prompt has no words. */
export const promptTitle = (prompt: string): string | null => {
  const sentence = firstSentence(prompt);
  const points = [...(sentence ?? "")];
  return points.length > TITLE_MAX ? `${points.slice(0, TITLE_MAX).join("").trimEnd()}…` : sentence;
};

/** The title of a session where sessions are listed. Null if it has neither a name, nor a trigger, nor a prompt. */
export const sessionTitle = (
  name: string | null,
  triggerSlug: string | null,
  prompt: string | null,
): string | null => name ?? triggerSlug ?? promptTitle(prompt ?? "");
