/** Who or what failed a turn, and what a person can do about it. It uses no document. */
import type { Answer } from "../../../src/cli/contract.ts";
import { isSessionLimit, modelErrorWords } from "../../../src/domain/session/model-errors.ts";
import { projectLink } from "../../elements/parts.ts";
import { knownRole, lackedRole } from "../../frame/roles.ts";
import type { Session } from "../../wire.d.ts";

type LastTurn = NonNullable<Session["last_turn"]>;
type Options = Answer<"GET /v1/projects/:pid/session-options">;

/** Who has the key of a model: the account's provider of that name, the operator's gateway, or the project's secrets. */
export type Keeper = { readonly account: string } | "operator" | "project";

/** The ways out for a person: go to an address, send a message, choose another model, or raise a limit. */
export type Remedy =
  | { readonly label: string; readonly link: string }
  | { readonly label: string; readonly does: "again" | "model" | "limit" };

export interface Cause {
  /** Who or what failed. */
  readonly actor: string;
  /** Where the key is, and who can replace it. Null: it is not about a key, or that is not known. */
  readonly place: string | null;
  /** The first one mends the cause. None: nothing is left to do here. */
  readonly remedies: readonly Remedy[];
}

const AGAIN: Remedy = { label: "Try again", does: "again" };
const LIMITS = "#/models?show=limits";
const PRICES = "#/models?show=prices";
/** The managed gateway, as a provider of `provider/model`. */
const GATEWAY = "managed";

/** Whether the reason is a key, so that `keeperOf` is worth a question. */
export const isAboutKey = (code: string): boolean => modelErrorWords(code)?.isAboutKey === true;

/**
 * Who has the key of a session's model.
 *
 * @param models `provider/model`, the likeliest first. Other names say nothing
 */
export const keeperOf = (models: readonly (string | null | undefined)[], { runtimes }: Options): Keeper => {
  const model = models.find((one) => one?.includes("/")) ?? "";
  const provider = model.slice(0, model.indexOf("/"));
  if (provider === GATEWAY) return "operator";
  const isAccounts = runtimes.some((runtime) =>
    runtime.provider_models.some((one) => one.startsWith(`${provider}/`)),
  );
  return isAccounts && provider !== "" ? { account: provider } : "project";
};

/** A key that the reader may replace, or may not. */
const keyAt = (
  place: string,
  { isOwn, owner, link }: Readonly<Record<"owner" | "link", string>> & { isOwn: boolean },
) => ({
  place: isOwn ? place : `${place} ${owner} can replace it.`,
  // Once the key is replaced, the turn is still to be done.
  remedies: isOwn ? [{ label: "Replace the key", link }, AGAIN] : [AGAIN],
});

const keyCause = (what: string, keeper: Keeper | null, project: string): Cause => {
  if (keeper === null) return { actor: `The model's provider ${what}`, place: null, remedies: [AGAIN] };
  if (keeper === "operator")
    return {
      actor: `The service's own gateway to models ${what}`,
      place: "Only the operator of this service can replace it.",
      remedies: [{ label: "Choose another model", does: "model" }, AGAIN],
    };
  if (keeper === "project")
    return {
      actor: `The model's provider ${what}`,
      ...keyAt("The key is a secret of this project.", {
        isOwn: lackedRole("set-secret") === null,
        owner: "An owner of the project",
        link: projectLink(project, "/secrets"),
      }),
    };
  return {
    actor: `${keeper.account} ${what}`,
    ...keyAt(`${keeper.account} is a provider of the account, which has the key.`, {
      // An owner of the account has no role that the page needs to know.
      isOwn: knownRole() === null,
      owner: "An owner of the account",
      // Its form is open there.
      link: `#/models?change=${encodeURIComponent(keeper.account)}`,
    }),
  };
};

const noModel = (project: string): Cause => {
  const actor = "The project has no model";
  const place =
    knownRole() === null
      ? { label: "Add a provider of models", link: "#/models" }
      : lackedRole("add-secret") === null
        ? { label: "Add a key to the project", link: projectLink(project, "/secrets") }
        : null;
  return { actor, place: null, remedies: place === null ? [AGAIN] : [place, AGAIN] };
};

/** A session's own limit stands in its details. The others are the account's, which its owners change. */
const limitCause = (message: string): Cause => {
  const actor = "A limit of spend is reached";
  const raise = "Raise the limit";
  if (isSessionLimit(message))
    return { actor, place: null, remedies: [{ label: raise, does: "limit" }, AGAIN] };
  return knownRole() === null
    ? { actor, place: null, remedies: [{ label: raise, link: LIMITS }, AGAIN] }
    : { actor, place: "An owner of the account can raise it.", remedies: [AGAIN] };
};

const unpricedCause = (): Cause => {
  const actor = "The model has no known price, which a limit in dollars needs";
  return knownRole() === null
    ? { actor, place: null, remedies: [{ label: "Set its price", link: PRICES }, AGAIN] }
    : { actor, place: "An owner of the account can set its price.", remedies: [AGAIN] };
};

/**
 * Why a turn did not end well.
 *
 * @param keeper null: not known
 */
export const causeOf = (
  { state, error }: LastTurn,
  { project, keeper }: { readonly project: string; readonly keeper: Keeper | null },
): Cause => {
  const code = error?.code ?? "";
  if (code === "no_model") return noModel(project);
  if (code === "spend_limit") return limitCause(error?.message ?? "");
  if (code === "model_without_price") return unpricedCause();
  if (code === "context_exceeded")
    return {
      actor: "The conversation is too long for the model",
      place: null,
      remedies: [{ label: "New session from this branch", link: projectLink(project, "/new") }],
    };
  const refusal = modelErrorWords(code);
  if (refusal?.isAboutKey === true) return keyCause(refusal.did, keeper, project);
  if (refusal !== null)
    return {
      actor: `The model's provider ${refusal.did}`,
      place: null,
      remedies:
        code === "unknown_model" ? [{ label: "Choose another model", does: "model" }, AGAIN] : [AGAIN],
    };
  if (code === "sandbox_lost")
    return {
      actor: "The sandbox ended in the middle of the agent's turn",
      place: null,
      remedies: [{ label: "Send the message again", does: "again" }],
    };
  const actor = state === "failed" ? "The agent's turn failed" : `The agent's turn was ${state}`;
  return { actor, place: null, remedies: [AGAIN] };
};
