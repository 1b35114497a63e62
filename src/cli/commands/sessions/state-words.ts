/** A session's state in the words of the page. The status of the API stands in `sessions why`. */
import { ACTIVITY_WORDS } from "../../../domain/session/activity-words.ts";
import type { Answer } from "../../contract.ts";
import { time } from "../../terminal.ts";

type Session = Pick<Answer<"GET /v1/projects/:pid/sessions/:sid">, "activity" | "archived" | "turn">;

export const stateWord = ({ activity, archived }: Pick<Session, "activity" | "archived">): string =>
  ACTIVITY_WORDS[activity].word + (archived ? ", archived" : "");

/** With the beginning of the turn, while there is one. */
export const stateLine = ({ turn: { state, since }, ...session }: Session): string =>
  `${stateWord(session)}${state === "idle" ? "" : ` since ${time(since)}`}`;
