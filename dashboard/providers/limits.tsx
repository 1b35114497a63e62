/** The account's limits of spend, and what was spent this month. Owners read and change them. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Answer, Request } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { queries } from "../api/queries.ts";
import { dollars, grouped } from "../elements/format.ts";
import { ask } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";
import { Act } from "../ui/act.tsx";
import { Form, SelectField } from "../ui/form.tsx";
import { Detail, Row, Table } from "../ui/parts.tsx";
import { AmountFields, amountIn, amountWords } from "./amount.tsx";
import { Uncounted, type UncountedSession } from "./uncounted.tsx";
import { useSought } from "./sought.ts";
import { ACCOUNT, providersQuery, unpricedNames } from "./place.ts";

type Spend = Answer<"GET /v1/spend">;
type Limit = Spend["limits"][number];
type Scope = Request<"PUT /v1/spend-limits">["payload"]["scope"];
type Typed = Readonly<Record<string, string>>;

export const spendQuery = queryOptions({
  queryKey: ["spend"],
  queryFn: () => request("GET /v1/spend", {}),
});

/** Those that a limit may be set for. */
const subjectsQuery = queryOptions({
  queryKey: ["spend-subjects"],
  queryFn: async () => {
    const [{ projects }, { people }] = await Promise.all([
      request("GET /v1/projects", { query: { limit: 200 } }),
      request("GET /v1/people", { query: { limit: 200 } }),
    ]);
    return { projects, people };
  },
});

/** Without a known price, only tokens are known. */
const sumWords = ({ usd, tokens }: Spend["spent"]): string =>
  `${usd > 0 ? `${dollars(usd)} · ` : ""}${grouped(tokens)} tokens`;

const TITLES: Readonly<Record<Limit["scope"], (name: string) => string>> = {
  account: () => "The account, each month",
  each_session: () => "Each session without a limit of its own",
  project: (name) => `Project ${name}, each month`,
  person: (name) => `${name}, each month`,
  trigger: (name) => `Trigger ${name}, each day`,
  session: (name) => `Session ${name}`,
};

/** A price counts for the calls after it. */
const UNPRICED = ": calls before a model had a price count nothing";

const titleOf = ({ scope, name, subject }: Limit): string =>
  TITLES[scope](name === "" ? subject.slice(-8) : name).trim();

/** A limit in dollars refuses calls of models without a price, so a person sets it knowingly. @returns whether she does */
const isMeant = async (typed: Typed): Promise<boolean> => {
  if (typed["unit"] === "tokens") return true;
  const names = unpricedNames(await queries.query(providersQuery(ACCOUNT)));
  if (names.length === 0) return true;
  const sure = await ask({
    title: "Set a limit in dollars?",
    text: `No price is known for ${names.join(", ")}. From now on, calls of these models are refused where the limit applies. Set their prices first, or a limit in tokens.`,
    confirm: "Set it anyway",
  });
  return sure !== null;
};

/** @returns the running sessions that it does not count. A session's own is refused where it counts nothing. */
const set = async (limit: Limit, typed: Typed): Promise<readonly UncountedSession[]> => {
  const payload = amountIn(typed);
  const { scope, subject, project_id: pid } = limit;
  if (scope === "session" && pid !== null) {
    await request("PUT /v1/projects/:pid/sessions/:sid/spend-limit", {
      params: { pid, sid: subject },
      payload,
    });
    return [];
  }
  const answer =
    scope === "trigger" && pid !== null
      ? await request("PUT /v1/projects/:pid/triggers/:slug/spend-limit", {
          params: { pid, slug: limit.name },
          payload,
        })
      : await setNew({ scope: scope as Scope, subject }, payload);
  return answer.uncounted_sessions;
};

const setNew = (
  { scope, subject }: { readonly scope: Scope; readonly subject: string },
  amount: ReturnType<typeof amountIn>,
) => request("PUT /v1/spend-limits", { payload: { scope, ...(subject !== "" && { subject }), ...amount } });

const remove = async (limit: Limit): Promise<void> => {
  const sure = await ask({
    title: "Remove this limit?",
    text: `${titleOf(limit)}: ${amountWords(limit)}. Agents then spend without it.`,
    confirm: "Remove",
    danger: true,
  });
  if (sure === null) return;
  await request("DELETE /v1/spend-limits/:id", { params: { id: limit.id } });
  notice("The limit is removed.");
};

const LimitRow = ({ limit }: { readonly limit: Limit }) => {
  const [isOpen, setOpen] = useState(false);
  const [uncounted, setUncounted] = useState<readonly UncountedSession[]>([]);
  const { unit, amount, spent } = limit;
  const title = titleOf(limit);
  const used = spent === null ? null : unit === "usd" ? spent.usd : spent.tokens;
  return (
    <>
      <Row
        states={<span>{amountWords(limit)}</span>}
        actions={
          <>
            <Act label={isOpen ? "Cancel" : "Change"} about={title} does={async () => setOpen(!isOpen)} />
            <Act label="Remove" about={title} does={() => remove(limit)} />
          </>
        }
      >
        <strong>{title}</strong>
        {used !== null && (
          <Detail>
            <progress max={amount} value={Math.min(used, amount)} aria-label={`Spent of ${title}`} />{" "}
            {`${amountWords({ unit, amount: used })} spent`}
            {unit === "usd" && spent?.usd === 0 && spent.tokens > 0 && UNPRICED}
          </Detail>
        )}
      </Row>
      {isOpen && (
        <li>
          <Form
            submit="Change the limit"
            sending="Changing…"
            onSend={async (typed) => {
              if (!(await isMeant(typed))) return;
              setUncounted(await set(limit, typed));
              notice("The limit is changed.");
              setOpen(false);
            }}
          >
            <AmountFields initial={limit} />
          </Form>
        </li>
      )}
      {uncounted.length > 0 && (
        <li>
          <Uncounted sessions={uncounted} />
        </li>
      )}
    </>
  );
};

const AddLimit = () => {
  const [uncounted, setUncounted] = useState<readonly UncountedSession[]>([]);
  const { data } = useQuery(subjectsQuery);
  const options: (readonly [string, string])[] = [
    ["account ", "The account, each month"],
    ["each_session ", "Each session"],
    ...(data?.projects ?? []).map(
      ({ id, name }) => [`project ${id}`, `Project ${name}, each month`] as const,
    ),
    ...(data?.people ?? []).map(({ id, name }) => [`person ${id}`, `${name}, each month`] as const),
  ];
  return (
    <section>
      <h2>Set a limit</h2>
      <Form
        submit="Set the limit"
        sending="Setting…"
        onSend={async ({ subject: chosen = "", ...typed }) => {
          if (!(await isMeant(typed))) return;
          const [scope = "", subject = ""] = chosen.split(" ");
          const answer = await setNew({ scope: scope as Scope, subject }, amountIn(typed));
          setUncounted(answer.uncounted_sessions);
          notice("The limit is set.");
          if (answer.uncounted_sessions.length > 0) return;
          document.getElementById("limits")?.scrollIntoView({ block: "start" });
        }}
      >
        <SelectField
          name="subject"
          label="For"
          hint="Those of triggers are set at each trigger of a project, those of single sessions in their details."
          options={options}
        />
        <AmountFields />
      </Form>
      <Uncounted sessions={uncounted} />
    </section>
  );
};

const SpentTables = ({ spent: all, people, projects, days }: Spend) => {
  const rowsOf = (list: Spend["people"]) => list.map(({ name, spent }) => [name, sumWords(spent)]);
  const sum = (of: keyof Spend["spent"]): number => people.reduce((total, { spent }) => total + spent[of], 0);
  // Rounding leaves parts of a cent.
  const others = { usd: Math.max(0, all.usd - sum("usd")), tokens: Math.max(0, all.tokens - sum("tokens")) };
  return (
    <section className="spent">
      <h2>Spent this month</h2>
      {projects.length > 0 && <Table heads={["Project", "Spent"]} rows={rowsOf(projects)} />}
      {people.length > 0 && (
        <Table
          heads={["Person", "Spent"]}
          rows={[
            ...rowsOf(people),
            ...(others.tokens > 0 ? [["Without a person, as by triggers", sumWords(others)]] : []),
          ]}
        />
      )}
      <Table heads={["Day (UTC)", "Spent"]} rows={days.map(({ day, spent }) => [day, sumWords(spent)])} />
    </section>
  );
};

export const Limits = () => {
  const { data } = useQuery(spendQuery);
  const section = useSought("limits");
  if (data === undefined) return null;
  const { month, spent, days, limits } = data;
  return (
    <>
      <section ref={section}>
        <h2 id="limits">Limits of spend</h2>
        <p className="quiet">
          {`Spent in ${month}: ${sumWords(spent)}. Money by the prices of models; calls of a model without a price count no dollars, and a limit in dollars refuses them. At 80\u00a0% a session says so, at 100\u00a0% its turn ends.`}
        </p>
        {limits.length > 0 && (
          <ul className="rows">
            {limits.map((limit) => (
              <LimitRow key={limit.id} limit={limit} />
            ))}
          </ul>
        )}
      </section>
      <AddLimit />
      {days.length > 0 && <SpentTables {...data} />}
    </>
  );
};
