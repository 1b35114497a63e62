/** A project's triggers: when each runs next, what became of its last run, and the entries of the manifest with a mistake. */
import type { ReactNode } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { usesVariable } from "../../src/domain/trigger/placeholders.ts";
import { request } from "../api/client.ts";
import { ApiError } from "../api/api.ts";
import { counted } from "../elements/format.ts";
import { firesLink, projectLink, refusedLink } from "../elements/parts.ts";
import { TriggersSwitch } from "../projects/acts.tsx";
import { headOf } from "../projects/head.tsx";
import { isArchived } from "../projects/project.ts";
import { lackedRole } from "../frame/roles.ts";
import { Act, FrameAct, RoleAct } from "../ui/act.tsx";
import { ActionsMenu } from "../ui/actions-menu.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Callout, Codes, CopyLine, Empty, Facts, Prose, Tag, Time } from "../ui/parts.tsx";
import { actOn } from "./changes.ts";
import { eventsOf, receiverOf, sampleDelivery, type Trigger } from "./deliveries.ts";
import { Instants } from "./instants.tsx";
import { TriggerLimit } from "./limit.tsx";
import { openPreview } from "./preview.tsx";
import { LastRun, Schedule, State } from "./row-parts.tsx";
import { scheduleWords } from "./schedule.ts";
import { type Known, Senders } from "./senders.tsx";

type Project = Answer<"GET /v1/projects/:pid">;
type Listing = Answer<"GET /v1/projects/:pid/triggers">;
type Mistake = Listing["errors"][number];

interface Shown extends Known {
  readonly listing: Listing;
}

/** The project's secrets. Null: they are not this reader's to see. */
export const readSecrets = async (pid: string): Promise<Known["secrets"]> => {
  try {
    const { secrets } = await request("GET /v1/projects/:pid/secrets", { params: { pid } });
    return new Map(secrets.map(({ name, masked }) => [name, masked]));
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return null;
    throw error;
  }
};

const PageActions = ({ project, listing }: Shown) =>
  !isArchived(project) && (
    <p className="actions page-actions">
      {lackedRole("propose-trigger") === null && (
        <a className="button primary" href={projectLink(project.id, "/triggers/new")}>
          Add a trigger
        </a>
      )}
      {(listing.triggers_paused || listing.triggers.length > 0) && (
        <TriggersSwitch pid={project.id} isPaused={listing.triggers_paused} />
      )}
    </p>
  );

const mistakePlace = ({ slug, index }: Mistake): string =>
  slug ?? (index === null ? "platform.toml" : `entry ${index + 1}`);

const MistakeText = ({ mistake: { path, line, message } }: { readonly mistake: Mistake }) => (
  <>
    {path !== null && (
      <>
        {" "}
        <code>{path}</code>
      </>
    )}
    {line !== null && ` line ${line}`}
    {": "}
    <Prose text={message} />
  </>
);

const Mistakes = ({ errors }: { readonly errors: readonly Mistake[] }) =>
  errors.length > 0 && (
    <section className="callout" data-tone="bad">
      <h2>{`platform.toml has ${counted(errors.length, "error")}`}</h2>
      <ul>
        {errors.map((mistake, at) => (
          <li key={at}>
            <strong>{mistakePlace(mistake)}</strong>
            <MistakeText mistake={mistake} />
          </li>
        ))}
      </ul>
    </section>
  );

const Notes = ({ project, listing }: Shown) => (
  <>
    {listing.triggers_paused && !isArchived(project) && (
      <Callout tone="warn">
        All triggers of this project are paused. Webhook deliveries get a 404 response. You can still run a
        trigger by hand. <a href={refusedLink(project.id)}>Show refused deliveries</a>
      </Callout>
    )}
    {listing.manifest.stale && (
      <Callout tone="warn">
        platform.toml has a syntax error. The triggers of its last valid version stay active.
      </Callout>
    )}
    {listing.scheduler.late && (
      <Callout tone="warn">
        The scheduler is behind. Cron triggers run later than their schedule says.
      </Callout>
    )}
    {listing.warnings.map(({ code, message }) => (
      <Callout key={message} tone="warn">
        <Tag tone="warn">{code.replaceAll("_", " ")}</Tag> <Prose text={message} />
      </Callout>
    ))}
    <Mistakes errors={listing.errors} />
  </>
);

/** Half of a character, which no address can hold. */
const LONE = /[\ud800-\udfff]/gu;

const triggerLink = (pid: string, slug: string, page: "state" | "edit"): string =>
  projectLink(pid, `/triggers/${encodeURIComponent(slug.replace(LONE, "\ufffd"))}/${page}`);

interface About extends Known {
  readonly trigger: Trigger;
  readonly isPaused: boolean;
}

/** What became of its newest run, and a link to the others. */
const Runs = ({ project, trigger: { slug, name, last_fire: newest } }: About) => (
  <span className="parts">
    <LastRun pid={project.id} newest={newest} />
    <a href={firesLink(project.id, slug)} aria-label={`All runs of ${name}`}>
      all runs
    </a>
  </span>
);

/** Why a schedule has no next instant. */
const whyNever = ({ project, trigger, isPaused }: About): string => {
  if (isArchived(project)) return `none: the project is ${project.status}`;
  if (!trigger.enabled) return "paused";
  return isPaused ? "all triggers are paused" : "never";
};

const Next = (about: About) => {
  const { next_fire_at: soonest, upcoming, timezone = "UTC", cron = "" } = about.trigger;
  if (soonest === null || isArchived(about.project) || !about.trigger.enabled)
    return <span className="quiet">{whyNever(about)}</span>;
  // A schedule that has words is understood without its next instants.
  return scheduleWords(cron) === null ? (
    <Instants instants={upcoming.length > 0 ? upcoming : [soonest]} zone={timezone} />
  ) : (
    <details className="next-runs">
      <summary>
        <Time at={soonest} />
      </summary>
      <Instants instants={upcoming} zone={timezone} />
    </details>
  );
};

const Filter = ({ filter }: { readonly filter: NonNullable<Trigger["filter"]> }) => (
  <ul className="plain">
    {filter.events !== null && (
      <li>
        event <Codes names={filter.events} />
      </li>
    )}
    {filter.branches !== null && (
      <li>
        branch <Codes names={filter.branches} />
      </li>
    )}
    {Object.entries(filter.if ?? {}).map(([path, value]) => (
      <li key={path}>
        <code>{path}</code> = <code>{JSON.stringify(value)}</code>
      </li>
    ))}
    {Object.entries(filter.unless ?? {}).map(([path, value]) => (
      <li key={`unless ${path}`}>
        unless <code>{path}</code> = <code>{JSON.stringify(value)}</code>
      </li>
    ))}
    {filter.deletions && <li>also deletions of branches and tags</li>}
    {filter.own_pushes && <li>also pushes to sessions' branches, and their checks</li>}
    {filter.own_requests && <li>also the service's own pull requests</li>}
    {filter.own_comments && <li>also the service's own comments</li>}
  </ul>
);

const Secret = ({ project, secrets, name }: Known & { readonly name: string }) => (
  <span className="parts">
    <span>
      <code>{name}</code> {secrets !== null && !secrets.has(name) && <Tag tone="bad">has no value</Tag>}
    </span>
    {secrets?.get(name) === false && (
      <>
        <Tag tone="bad">not masked in logs</Tag>
        <span className="quiet">The value is shorter than 6 bytes. Set a longer one.</span>
      </>
    )}
    {secrets !== null && (
      <FrameAct
        name="set-secret"
        className="plain"
        input={{
          project: project.id,
          secret: name,
          service: "yes",
          rotates: secrets.has(name) ? "yes" : "",
        }}
        label={`${secrets.has(name) ? "Replace" : "Set"} the secret ${name}`}
      >
        {secrets.has(name) ? "Replace" : "Set"}
      </FrameAct>
    )}
  </span>
);

/** What a person can give to a run by hand, of `message`. A prompt that does not read it gets none. */
const HAND_FIELDS = ["text", "source"] as const;

const Actions = ({ project, trigger }: About) => {
  const { slug, name, type, enabled, upcoming, prompt } = trigger;
  const target = { pid: project.id, slug, name };
  const filter = trigger.filter ?? null;
  const [event] = eventsOf({ filter });
  const uses = HAND_FIELDS.filter((field) => usesVariable(prompt, `message.${field}`));
  const preview = async (): Promise<void> =>
    openPreview({
      ...target,
      title: name,
      kinds: [type, "manual"],
      upcoming,
      uses,
      request: {
        body: JSON.stringify(sampleDelivery({ filter, prompt }).body, null, 2),
        headers: event === undefined ? {} : { "x-github-event": event },
      },
    });
  const change = enabled ? "pause" : "resume";
  const isOpen = !isArchived(project);
  return (
    <div className="card-acts">
      <p className="actions">
        {isOpen && (
          <FrameAct
            name="fire"
            input={{ project: project.id, slug, title: name, uses: uses.join(" ") }}
            label={`Run now: ${name}`}
            className="plain"
          >
            Run now
          </FrameAct>
        )}
        <RoleAct entry="preview" className="plain" label="Preview" about={name} does={preview} />
        {isOpen && lackedRole("propose-trigger") === null && (
          <a href={triggerLink(project.id, slug, "edit")} aria-label={`Edit: ${name}`}>
            Edit
          </a>
        )}
      </p>
      {isOpen && lackedRole("propose-trigger") === null && (
        <ActionsMenu about={name}>
          <Act
            label={enabled ? "Pause" : "Resume"}
            className=""
            about={name}
            does={() => actOn(target, change)}
          />
          <Act label="Delete" className="danger" about={name} does={() => actOn(target, "delete")} />
        </ActionsMenu>
      )}
    </div>
  );
};

const Card = (about: About) => {
  const { project, secrets, trigger } = about;
  const { slug, name, type, cron, filter, secret_env: secret, webhook_url: url } = trigger;
  const receiver = receiverOf(trigger);
  return (
    <li className="card">
      <header className="card-head">
        <div>
          <h2>{name}</h2>
          <p className="quiet">
            <code>{slug}</code> <Tag>{type}</Tag>{" "}
            <State isEnabled={trigger.enabled} isPaused={about.isPaused} />
          </p>
        </div>
        <Actions {...about} />
      </header>
      <Facts
        rows={[
          ["Schedule", cron !== undefined && <Schedule {...trigger} cron={cron} />],
          ["Next run", type === "cron" && <Next {...about} />],
          ["Last run", <Runs {...about} />],
          ["Agent", trigger.agent],
          ["Filter", filter !== undefined && <Filter filter={filter} />],
          ["Secret", secret !== undefined && <Secret project={project} secrets={secrets} name={secret} />],
          ["Webhook", url !== undefined && <CopyLine text={url} />],
          ["Limit", <TriggerLimit pid={project.id} slug={slug} name={name} />],
          ["Why?", <a href={triggerLink(project.id, slug, "state")}>{`Why ${slug} fires or waits`}</a>],
        ]}
      />
      {receiver !== null && <Senders receiver={receiver} project={project} secrets={secrets} />}
      <details>
        <summary>Prompt</summary>
        <pre className="text" tabIndex={0}>
          {trigger.prompt}
        </pre>
      </details>
    </li>
  );
};

/** Where the mistakes are. What they are is above the list. */
const placeText = (errors: readonly Mistake[]): string => {
  const lines = [...new Set(errors.flatMap(({ line }) => line ?? []))];
  return lines.length === 0 ? "platform.toml" : `line ${lines.join(", ")} of platform.toml`;
};

/** An entry that the service does not serve. */
const WrongCard = ({ project, slug, errors }: WrongEntry & { readonly project: Project }) => (
  <li className="card">
    <header className="card-head">
      <div>
        <h2>{slug}</h2>
        <p className="quiet">
          <Tag tone="bad">mistake</Tag> It is not served until {placeText(errors)} is corrected.
        </p>
      </div>
      {!isArchived(project) && lackedRole("propose-trigger") === null && (
        <ActionsMenu about={slug}>
          <Act
            label="Delete"
            className="danger"
            about={slug}
            does={() => actOn({ pid: project.id, slug, name: slug }, "delete")}
          />
        </ActionsMenu>
      )}
    </header>
  </li>
);

interface WrongEntry {
  readonly slug: string;
  readonly errors: readonly Mistake[];
}

/** The entries with a mistake that the manifest names, and that no good entry has the name of. */
const wrongEntries = ({ triggers, errors }: Listing): readonly WrongEntry[] => {
  const served = new Set(triggers.map(({ slug }) => slug));
  const wrong = errors.filter(({ slug, index }) => slug !== null && index !== null && !served.has(slug));
  return [...Map.groupBy(wrong, ({ slug }) => slug ?? "")].map(([slug, own]) => ({ slug, errors: own }));
};

const List = ({ children }: { readonly children: ReactNode }) => <ul className="cards wide">{children}</ul>;

const Triggers = ({ data }: { readonly data: Shown }) => {
  const { project, listing, secrets } = data;
  const wrong = wrongEntries(listing);
  const { commit, synced_at: synced } = listing.manifest;
  return (
    <>
      <PageActions {...data} />
      <Notes {...data} />
      {listing.triggers.length + wrong.length === 0 ? (
        <Empty title="No triggers yet.">
          A trigger starts sessions on a schedule, or when another system sends a signed request. It is an
          entry of <code>platform.toml</code> on the default branch.
        </Empty>
      ) : (
        <List>
          {listing.triggers.map((trigger) => (
            <Card
              key={trigger.slug}
              trigger={trigger}
              isPaused={listing.triggers_paused}
              project={project}
              secrets={secrets}
            />
          ))}
          {wrong.map((entry) => (
            <WrongCard key={entry.slug} project={project} {...entry} />
          ))}
        </List>
      )}
      {commit !== null && (
        <p className="quiet">
          Triggers read from commit <code>{commit.slice(0, 10)}</code> <Time at={synced} />
        </p>
      )}
    </>
  );
};

export const triggers = framedPage<Shown>({
  load: async ([pid = ""]) => {
    const params = { pid };
    const [project, listing, secrets] = await Promise.all([
      request("GET /v1/projects/:pid", { params }),
      request("GET /v1/projects/:pid/triggers", { params }),
      readSecrets(pid),
    ]);
    return { project, listing, secrets };
  },
  title: ({ project }) => `Triggers of ${project.name}`,
  head: headOf("/triggers"),
  Body: Triggers,
});
