/** Why a session's last turn did not end well: who or what failed, the reason, and what a person can do about it. */
import { useRef } from "react";
import type { Conversation } from "../reading/model.js";
import { projectLink } from "../../elements/parts.js";
import { isLive } from "../../projects/project.js";
import { setFilter } from "../../ui/address.ts";
import { Callout, Prose } from "../../ui/parts.tsx";
import type { Around } from "../foot/foot.ts";

type LastTurn = NonNullable<Around["session"]["last_turn"]>;

/** What a person can do: an address of the project, a message, or another model. */
type Remedy =
  | { readonly label: string; readonly link: "/secrets" | "/new" }
  | { readonly label: string; readonly does: "again" | "model" | "limit" };

interface Cause {
  /** Who or what failed. */
  readonly actor: string;
  readonly remedy: Remedy | null;
}

const AGAIN: Remedy = { label: "Try again", does: "again" };
const KEY: Remedy = { label: "Replace the key", link: "/secrets" };

/** By the code of the error. */
const CAUSES: Readonly<Record<string, Cause>> = {
  no_model: { actor: "The project has no model", remedy: { label: "Add a key", link: "/secrets" } },
  model_unauthorized: { actor: "The model's provider refused the key", remedy: KEY },
  model_quota: { actor: "The key's quota at the model's provider is used up", remedy: KEY },
  unknown_model: {
    actor: "The model's provider does not have the model",
    remedy: { label: "Choose another model", does: "model" },
  },
  spend_limit: {
    actor: "A limit of spend is reached",
    remedy: { label: "Raise the limit", does: "limit" },
  },
  model_unavailable: { actor: "The model's provider did not respond", remedy: AGAIN },
  model_refused: { actor: "The model's provider refused the request", remedy: AGAIN },
  context_exceeded: {
    actor: "The conversation is too long for the model",
    remedy: { label: "New session from this branch", link: "/new" },
  },
};

const causeOf = ({ state, error }: LastTurn): Cause =>
  CAUSES[error?.code ?? ""] ?? {
    actor: state === "failed" ? "The agent's turn failed" : `The agent's turn was ${state}`,
    remedy: AGAIN,
  };

export interface Remedies {
  /** Sends a message that makes the agent go on. */
  readonly again: () => void;
  readonly chooseModel: () => void;
}

/** The details of the session have its limit. */
const showLimit = (): void => setFilter("tab", "details");

/** The last turn, if it failed and no other one has followed. The page reads a moment later how that one ended. */
export const useFailure = ({ session }: Around, { turn }: Conversation): LastTurn | null => {
  const followed = useRef("");
  const { last_turn: last } = session;
  if (last === null || last === undefined || last.error === null) return null;
  if (isLive(session.status) && turn.state !== "idle") followed.current = last.at;
  return followed.current === last.at ? null : last;
};

export const FailedTurn = ({
  last,
  project,
  again,
  chooseModel,
}: Remedies & { readonly last: LastTurn; readonly project: string }) => {
  const { actor, remedy } = causeOf(last);
  return (
    <Callout tone={last.state === "failed" ? "bad" : "warn"}>
      <strong>{actor}.</strong>
      <p className="text" dir="auto">
        <Prose text={last.error?.message ?? ""} />
      </p>
      {remedy !== null && (
        <p className="actions">
          {"link" in remedy ? (
            <a className="button" href={projectLink(project, remedy.link)}>
              {remedy.label}
            </a>
          ) : (
            <button type="button" onClick={{ again, model: chooseModel, limit: showLimit }[remedy.does]}>
              {remedy.label}
            </button>
          )}
        </p>
      )}
    </Callout>
  );
};
