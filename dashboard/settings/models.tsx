/** What the sessions of a project can use: providers of models with their owners, and keys that are secrets. */
import { useQuery } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { projectLink } from "../elements/parts.ts";
import { knownRole, lackedRole } from "../frame/roles.ts";
import { optionsQuery, setupQuery } from "../home/options.ts";
import { AddForm, ProviderRows } from "../providers/list.tsx";
import { ofProject, providersQuery } from "../providers/place.ts";
import { Codes, Detail, Row, Tag } from "../ui/parts.tsx";

type Options = Answer<"GET /v1/projects/:pid/session-options">;
type Usable = Options["providers"][number];

const OWNERS = { person: "your own", project: "the project's", account: "the account's" } as const;

const UNUSED = {
  secret:
    "Not used: a secret of the project has a key of this name, which comes first. Its calls are not counted.",
  person: "Not used in your sessions: your own provider of this name comes first.",
  project: "Not used: the project's provider of this name comes first.",
} as const;

/** A provider may list hundreds. */
const SHOWN_MODELS = 4;

const UsableRow = ({ provider: { name, kind, owner, models, unused } }: { readonly provider: Usable }) => (
  <Row
    states={
      <>
        <Tag>{kind}</Tag>
        {unused !== null && <Tag tone="warn">not used</Tag>}
      </>
    }
    actions={
      (owner === "person" || (owner === "account" && knownRole() === null)) && (
        <a href={`#/models?change=${name}`} aria-label={`Change ${name}, ${OWNERS[owner]}`}>
          Change
        </a>
      )
    }
  >
    <strong className={unused === null ? undefined : "quiet"}>{name}</strong> {OWNERS[owner]}
    {unused === null ? (
      <Detail>
        <Codes names={models.slice(0, SHOWN_MODELS).map((model) => `${name}/${model}`)} />
        {models.length > SHOWN_MODELS && ` and ${models.length - SHOWN_MODELS} more`}
      </Detail>
    ) : (
      <Detail>{UNUSED[unused]}</Detail>
    )}
  </Row>
);

export const ModelsPart = ({ pid }: { readonly pid: string }) => {
  const { data: options } = useQuery(optionsQuery(pid));
  const { data: setup } = useQuery(setupQuery(pid));
  const place = ofProject(pid);
  const { data: own = [] } = useQuery(providersQuery(place));
  const governs = lackedRole("set-secret") === null;
  const keys = (setup?.providers ?? []).filter(({ configured }) => configured);
  const usable = options?.providers ?? [];
  return (
    <>
      <p>
        Sessions that you start here can use these. {options?.default_model != null && "The default is "}
        {options?.default_model != null && <code>{options.default_model}</code>}
        {options?.default_model != null && "."}
      </p>
      {usable.length + keys.length === 0 ? (
        <p className="quiet">No provider and no key. The operator&apos;s gateway may give a model.</p>
      ) : (
        <ul className="rows">
          {usable.map((provider) => (
            <UsableRow key={`${provider.owner} ${provider.name}`} provider={provider} />
          ))}
          {keys.map(({ id, model, secrets }) => (
            <Row
              key={id}
              states={<Tag tone="warn">not counted</Tag>}
              actions={<a href={projectLink(pid, "/secrets")}>Secrets</a>}
            >
              <strong>{id}</strong> a key that is a secret of the project
              <Detail>
                {`${secrets.join(" or ")}, in each sandbox. `}
                <Codes names={[model]} />
              </Detail>
            </Row>
          ))}
        </ul>
      )}
      <h3>The project&apos;s own providers</h3>
      {own.length === 0 && <p className="quiet">None. They come before the account&apos;s.</p>}
      <ProviderRows place={place} providers={own} governs={governs} />
      {governs && <AddForm place={place} title="Add a provider for this project" />}
    </>
  );
};
