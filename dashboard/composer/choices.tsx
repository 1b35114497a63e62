/** The choice of model and agent for a message. The service is asked for them when a reader opens the choice first. */
import { useEffect, useState } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { ApiError } from "../api/api.ts";
import { readAt } from "../api/client.ts";
import { ModelMenu, type ShownModel } from "../ui/model-menu.tsx";
import type { Chosen, Moment } from "./rules.ts";
import type { Writing } from "./writing.ts";

const CHOICES_ID = "message-choices";

type ModelListing = Answer<"GET /v1/projects/:pid/sessions/:sid/models">;
type Option = readonly [value: string, label: string, explanation?: string | null];

const problemOf = (error: unknown): string =>
  error instanceof ApiError && error.code === "session_not_running"
    ? "The models are known while the session runs. Send a message first."
    : `${error instanceof Error ? error.message : String(error)} Close and open this choice to try again.`;

/** @param path of the session in the API @param isOpen each opening without a list asks for it */
export const useModels = (path: string, isOpen: boolean) => {
  const [listing, setListing] = useState<ModelListing | null>(null);
  // Null: the answer is awaited.
  const [problem, setProblem] = useState<string | null>("");
  const isKnown = listing !== null;
  useEffect(() => {
    if (!isOpen || isKnown) return;
    setProblem(null);
    readAt<"GET /v1/projects/:pid/sessions/:sid/models">(`${path}/models`).then(
      (answer) => {
        setListing(answer);
        setProblem("");
      },
      (error: unknown) => setProblem(problemOf(error)),
    );
  }, [path, isOpen, isKnown]);
  return { listing, problem };
};

type Models = ReturnType<typeof useModels>;

interface ChoiceParts {
  readonly models: Models;
  readonly writing: Writing;
  readonly moment: Pick<Moment, "isFirst" | "model">;
}

/** Before the first message of the agent there is no "before". */
const withoutChoice = ({ isFirst }: Pick<Moment, "isFirst">): string =>
  isFirst ? "The session's" : "As before";

const modelIn = (listing: ModelListing | null, model: string): ShownModel & { readonly name: string } =>
  listing?.models.find(({ id }) => id === model) ?? { id: model, name: model };

/** Runtimes name what they do by themselves so. */
const wordsOf = (name: string): string => (name === "default" ? "as usual" : name);

/** Opens the choice, and says what is chosen. */
export const ChoicesButton = ({ models: { listing }, writing, moment }: ChoiceParts) => {
  const { model, agent, effort } = writing.chosen;
  const named = [modelIn(listing, model).name, wordsOf(agent), effort].filter((one) => one !== "");
  const otherwise =
    moment.model === null ? withoutChoice(moment).toLowerCase() : modelIn(listing, moment.model).name;
  return (
    <button
      type="button"
      className="quiet-button"
      aria-expanded={writing.isChoosing}
      aria-controls={CHOICES_ID}
      onClick={() => writing.openChoices(!writing.isChoosing)}
    >
      <span>
        {"Model"}
        {named.length > 0 ? `: ${named.join(" · ")}` : <span className="as-before">{`: ${otherwise}`}</span>}
      </span>
    </button>
  );
};

const PickOne = ({
  name,
  label,
  otherwise,
  options,
  writing,
  isOff = false,
}: {
  readonly name: keyof Chosen;
  readonly label: string;
  readonly otherwise: string;
  readonly options: readonly Option[];
  readonly writing: Writing;
  readonly isOff?: boolean;
}) => {
  const value = writing.chosen[name];
  // A kept choice is offered before the list is loaded, too.
  const isKnown = value === "" || options.some(([one]) => one === value);
  const all: readonly Option[] = [["", otherwise], ...options, ...(isKnown ? [] : [[value, value] as const])];
  return (
    <label className="pick">
      {label}
      <select
        name={name}
        value={value}
        disabled={isOff}
        onChange={({ target }) => writing.choose({ [name]: target.value })}
      >
        {all.map(([one, words, explanation]) => (
          <option key={one} value={one} title={explanation ?? undefined}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
};

const NO_MODELS: ModelListing["models"] = [];

const PickModel = ({ models: { listing }, writing, moment }: ChoiceParts) => (
  <div className="pick">
    <span aria-hidden="true">Model</span>
    <ModelMenu
      label="Model"
      models={listing?.models ?? NO_MODELS}
      own={{
        words: withoutChoice(moment),
        model: moment.model === null ? null : modelIn(listing, moment.model),
      }}
      inUse={listing?.default_model ?? null}
      value={writing.chosen.model}
      onChoose={(model) => writing.choose({ model })}
    />
  </div>
);

/** Those of the model that is chosen, or in use. */
const effortOptions = (listing: ModelListing | null, model: string): readonly Option[] => {
  const used = model === "" ? listing?.default_model : model;
  const { efforts = [] } = listing?.models.find(({ id }) => id === used) ?? {};
  return efforts.map((effort) => [effort, effort === "default" ? "the model's own" : effort]);
};

/** What the runtime cannot do, with the reasons. */
const Lacks = ({ listing }: { readonly listing: ModelListing | null }) =>
  (listing?.lacks ?? []).map(({ ability, reason }) => (
    <p key={ability} className="quiet lacked">
      {reason}
    </p>
  ));

export const Choices = ({ models, writing, moment }: ChoiceParts) => {
  const { listing, problem } = models;
  const otherwise = withoutChoice(moment);
  const agents = (listing?.agents ?? []).map(
    ({ name, description }) => [name, wordsOf(name), description] as const,
  );
  const efforts = effortOptions(listing, writing.chosen.model);
  return (
    <div id={CHOICES_ID} className="choices-of-message" hidden={!writing.isChoosing}>
      <PickModel models={models} writing={writing} moment={moment} />
      <PickOne name="agent" label="Agent" otherwise={otherwise} options={agents} writing={writing} />
      <PickOne
        name="effort"
        label="Effort"
        otherwise={efforts.length === 0 && listing !== null ? "No choice" : otherwise}
        options={efforts}
        writing={writing}
        isOff={efforts.length === 0 && writing.chosen.effort === ""}
      />
      <p className={problem === null || problem === "" ? "quiet" : "refusal"} role="status">
        {problem ?? "Loading…"}
      </p>
      <Lacks listing={listing} />
    </div>
  );
};
