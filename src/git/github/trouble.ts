/** Errors from a code host, as sentences that a person can act on. */
import { isRecord, parseJson } from "../../ground/record.ts";
import { cutText, storableText } from "../../domain/text.ts";
import { GitError } from "../port.ts";
import type { WireAnswer } from "./wire.ts";

export interface Trouble {
  /** A retry may succeed. */
  readonly passes: boolean;
  /** The host did not perform the call, so any call may be repeated. */
  readonly afterRefusal: boolean;
  readonly error: (host: string) => GitError;
}

/** The error of a host that is unreachable or fails. @param why follows the host's name in a sentence. */
export const githubTrouble = (
  why: string,
  { afterRefusal }: { readonly afterRefusal: boolean } = { afterRefusal: false },
): Trouble => ({
  passes: true,
  afterRefusal,
  error: (host) => new GitError({ code: "unavailable", message: `The code host ${host} ${why}. Try again.` }),
});

const MESSAGE_LENGTH = 300;

const record = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {});

const errorTexts = (json: unknown): readonly string[] => {
  const { message, errors } = record(json);
  const details = Array.isArray(errors) ? errors.map((error) => record(error)["message"] ?? error) : [];
  return [message, ...details].filter((text) => typeof text === "string");
};

/** The host's own sentence in an answer. Empty if it has none. A token in it is removed. */
export const hostMessage = ({ status, text }: WireAnswer, token: string): string => {
  if (status < 400) return "";
  const message = storableText(errorTexts(parseJson(text)).join(" ")).replaceAll(token, "[token]");
  // oxlint-disable-next-line no-control-regex -- it is shown in terminals too
  return cutText(message.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, " ").trim(), MESSAGE_LENGTH);
};

const refusal = (sentence: string, words: string): Trouble => ({
  passes: false,
  afterRefusal: true,
  error: (host) =>
    new GitError({
      code: "refused",
      message: `The code host ${host} ${sentence}${words === "" ? "" : ` It says: ${words}`}`,
    }),
});

/** A status that is neither a success nor one that the caller handles. */
export const githubRefusal = (status: number, words: string): Trouble => {
  if (status >= 500 || status === 408)
    return githubTrouble(`failed with status ${status}${words === "" ? "" : ` and says: ${words}`}`);
  switch (status) {
    case 401:
      return refusal("rejects the credential (401). It is wrong, expired or revoked.", words);
    case 403:
      return refusal("does not allow this with the credential (403). Check its permissions.", words);
    case 404:
      return refusal(
        "does not have this repository, or the credential has no access to it (404). Check owner, name and access.",
        words,
      );
    case 409:
      return refusal(
        "cannot do this with the repository in its current state (409). An empty repository needs a first commit.",
        words,
      );
    case 301:
    case 302:
    case 307:
    case 308:
      return refusal(
        `says that the repository has moved (${status}). Create a project with its current owner and name.`,
        words,
      );
    default:
      return refusal(`refused this (${status}).`, words);
  }
};
