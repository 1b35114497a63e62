/**
 * The models of a menu: which of them an agent can work with, and in which order a person finds them. Every menu of models has these rules.
 *
 *  N1 A model that writes no text stands at the end, and says why. The runtime knows which these are, or else the name tells.
 *  N2 The models that the person chose last come first, the newest before the others. Then those that call tools, then those without tools, which
 *     can talk and change nothing. Among equals, the name decides.
 */

/** The facts about a model. An absent one is not known. */
export interface ListedModel {
  /** `provider/model`, or as its runtime names it. */
  readonly id: string;
  readonly name?: string;
  readonly writes_text?: boolean;
  readonly calls_tools?: boolean;
}

/** Words in a model's name that tell its purpose, where an agent cannot use it. */
const MADE_FOR: readonly (readonly [words: string, purpose: string])[] = [
  ["embed embedding embeddings bge", "makes embeddings, no text"],
  ["image images imagen dall flux", "makes images"],
  ["veo sora video", "makes videos"],
  ["lyria music", "makes music"],
  ["tts speech whisper transcribe transcription realtime", "is for speech"],
  ["moderation guard", "judges texts, and writes none"],
  ["rerank reranker", "sorts texts, and writes none"],
];

const PURPOSES: ReadonlyMap<string, string> = new Map(
  MADE_FOR.flatMap(([words, purpose]) => words.split(" ").map((word) => [word, purpose] as const)),
);

/** Why no agent can work with a model (N1). Null if one can, as far as it is known. */
export const unfitFor = ({ id, writes_text: writesText }: Pick<ListedModel, "id" | "writes_text">) => {
  const words = (id.split("/").at(-1) ?? "").toLowerCase().split(/[^a-z]+/);
  const purpose = words.map((word) => PURPOSES.get(word)).find((one) => one !== undefined);
  return purpose ?? (writesText === false ? "writes no text" : null);
};

/** A model's name, and its provider's. A runtime's own name has no provider: it is empty. */
export const shownModel = ({
  id,
  name,
}: ListedModel): { readonly name: string; readonly provider: string } => {
  const slash = id.indexOf("/");
  const provider = slash === -1 ? "" : id.slice(0, slash);
  return { name: name ?? id.slice(slash + 1), provider };
};

/** Whether each of the typed words is in a model's name, its provider or its id. */
export const isFound = (model: ListedModel, filter: string): boolean => {
  const text = `${model.name ?? ""} ${model.id}`.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
};

/** `unfit`: those that cannot be chosen. */
export type MenuPart = "recent" | "usual" | "toolless" | "unfit";

interface MenuEntry<M> {
  readonly model: M;
  readonly part: MenuPart;
  /** Why it cannot be chosen. Null if it can. */
  readonly reason: string | null;
}

const PARTS: readonly MenuPart[] = ["recent", "usual", "toolless", "unfit"];
const { compare } = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/**
 * The models in the order of the menu (N2).
 *
 * @param lastChosen ids, the last one first
 * @param whyNot why this agent cannot have a model. Null if it can
 */
export const modelMenu = <M extends ListedModel>(
  models: readonly M[],
  lastChosen: readonly string[],
  whyNot: (id: string) => string | null = () => null,
): readonly MenuEntry<M>[] => {
  const entries = models.map((model): MenuEntry<M> & { readonly rank: number; readonly name: string } => {
    const reason = unfitFor(model) ?? whyNot(model.id);
    const rank = lastChosen.indexOf(model.id);
    const usual = model.calls_tools === false ? "toolless" : "usual";
    const part = reason !== null ? "unfit" : rank === -1 ? usual : "recent";
    return { model, part, reason, rank: part === "recent" ? rank : 0, name: shownModel(model).name };
  });
  return entries
    .toSorted(
      (one, other) =>
        PARTS.indexOf(one.part) - PARTS.indexOf(other.part) ||
        one.rank - other.rank ||
        compare(one.name, other.name) ||
        compare(one.model.id, other.model.id),
    )
    .map(({ model, part, reason }) => ({ model, part, reason }));
};
