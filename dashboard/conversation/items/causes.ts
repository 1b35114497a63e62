/** Who or what failed a turn, and what a person can do about it. It uses no document. */
import type { Answer } from "../../../src/cli/contract.ts";
import { projectLink } from "../../elements/parts.js";
import { knownRole, lackedRole } from "../../frame/roles.js";
import type { Session } from "../../wire.d.ts";

type LastTurn = NonNullable<Session["last_turn"]>;
type Options = Answer<"GET /v1/projects/:pid/session-options">;

/** Who has the key of a model: the account's provider of that name, the operator's gateway, or the project's secrets. */
export type Keeper = { readonly account: string } | "operator" | "project";

/** What a person can do: go to an address, send a message, choose another model, or raise a limit. */
export type Remedy =
  | { readonly label: string; readonly link: string }
  | { readonly label: string; readonly does: "again" | "model" | "limit" };

export interface Cause {
  /** Who or what failed. */
  readonly actor: string;
  /** Where the key is, and who can replace it. Null: it is not about a key, or that is not known. */
  readonly place: string | null;
  readonly remedy: Remedy | null;
}

const AGAIN: Remedy = { label: "Try again", does: "again" };
/** The managed gateway, as a provider of `provider/model`. */
const GATEWAY = "managed";

/** By the code of the error. Those of keys are in `REFUSED`. */
const CAUSES: Readonly<Record<string, readonly [actor: string, remedy: Remedy | "new"]>> = {
  unknown_model: [
    "The model's provider does not have the model",
    { label: "Choose another model", does: "model" },
  ],
  spend_limit: ["A limit of spend is reached", { label: "Raise the limit", does: "limit" }],
  model_unavailable: ["The model's provider did not respond", AGAIN],
  model_refused: ["The model's provider refused the request", AGAIN],
  context_exceeded: ["The conversation is too long for the model", "new"],
};

/** What happened to a key, after the name of its provider. */
const REFUSED: Readonly<Record<string, string>> = {
  model_unauthorized: "refused the key",
  model_quota: "accepts no more requests with the key: its quota is used up",
};

/** Whether the reason is a key, so that `keeperOf` is worth a question. */
export const isAboutKey = (code: string): boolean => Object.hasOwn(REFUSED, code);

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

const keyCause = (what: string, keeper: Keeper | null, project: string): Cause => {
  const label = "Replace the key";
  if (keeper === null) return { actor: `The model's provider ${what}`, place: null, remedy: null };
  if (keeper === "operator")
    return {
      actor: `The service's own gateway to models ${what}`,
      place: "Its key is the operator's. Only the operator of this service can replace it.",
      remedy: { label: "Choose another model", does: "model" },
    };
  if (keeper === "project")
    return {
      actor: `The model's provider ${what}`,
      place:
        lackedRole("set-secret") === null
          ? "The key is a secret of this project."
          : "The key is a secret of this project. An owner of the project can replace it.",
      remedy: lackedRole("set-secret") === null ? { label, link: projectLink(project, "/secrets") } : null,
    };
  // An owner of the account has no role that the page needs to know.
  const governs = knownRole() === null;
  return {
    actor: `${keeper.account} ${what}`,
    place: `${keeper.account} is a provider of the account, which has the key.${
      governs ? "" : " An owner of the account can replace it."
    }`,
    remedy: governs ? { label, link: "#/models" } : null,
  };
};

const noModel = (project: string): Cause => {
  const actor = "The project has no model";
  if (knownRole() === null)
    return { actor, place: null, remedy: { label: "Add a provider of models", link: "#/models" } };
  const remedy =
    lackedRole("add-secret") === null
      ? { label: "Add a key to the project", link: projectLink(project, "/secrets") }
      : null;
  return { actor, place: null, remedy };
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
  const refused = isAboutKey(code) ? REFUSED[code] : undefined;
  if (refused !== undefined) return keyCause(refused, keeper, project);
  const [actor, remedy] = CAUSES[code] ?? [
    state === "failed" ? "The agent's turn failed" : `The agent's turn was ${state}`,
    AGAIN,
  ];
  return {
    actor,
    place: null,
    remedy:
      remedy === "new"
        ? { label: "New session from this branch", link: projectLink(project, "/new") }
        : remedy,
  };
};
