/** Who was asked to review the change request, what they answered, and a menu of the people who can be asked. */
import { request } from "../api/client.ts";
import { perform } from "../frame/app.ts";
import { notice } from "../frame/notices.ts";
import { lackedRole } from "../frame/roles.ts";
import { Act } from "../ui/act.tsx";
import { type Change, type ChangeData, type Member, paramsOf } from "./request.ts";
import { answerWords } from "./words.ts";

type Reviewer = Change["reviewers"][number];

const ROUTE = "/v1/projects/:pid/change-requests/:number/reviewers/:id";

const ask = async (change: Change, id: string): Promise<void> => {
  const { name } = await request(`PUT ${ROUTE}`, { params: { ...paramsOf(change), id } });
  notice(`${name} is asked for a review.`);
};

const takeBack = async (change: Change, { id, name }: Reviewer): Promise<void> => {
  await request(`DELETE ${ROUTE}`, { params: { ...paramsOf(change), id } });
  notice(`${name} is no longer asked for a review.`);
};

/** Who can be asked, and asked again: members who have not been asked, or who have answered. Who waits to be heard is asked already. */
const askable = ({ reviewers }: Change, members: readonly Member[]): readonly Member["user"][] =>
  members
    .filter(
      ({ user, role }) =>
        role !== "viewer" && !reviewers.some(({ id, answer }) => id === user.id && answer === null),
    )
    .map(({ user }) => user);

const Chip = ({
  change,
  reviewer,
  mayAsk,
}: {
  readonly change: Change;
  readonly reviewer: Reviewer;
  readonly mayAsk: boolean;
}) => (
  <li className="chip">
    <span className="chip-name" title={reviewer.name}>
      {reviewer.name}
    </span>
    <span className="quiet">{answerWords(change, reviewer)}</span>
    {mayAsk && (
      <Act
        label="×"
        about={`do not ask ${reviewer.name} for a review`}
        does={() => takeBack(change, reviewer)}
      />
    )}
  </li>
);

export const ReviewerRow = ({ data: { change, members } }: { readonly data: ChangeData }) => {
  const mayAsk = change.status === "open" && lackedRole("review-request") === null;
  const people = mayAsk ? askable(change, members) : [];
  if (change.reviewers.length === 0 && people.length === 0) return null;
  return (
    <section className="reviewers" aria-labelledby="reviewers">
      <h2 id="reviewers">Reviewers</h2>
      {change.reviewers.length > 0 && (
        <ul className="chips">
          {change.reviewers.map((reviewer) => (
            <Chip key={reviewer.id} change={change} reviewer={reviewer} mayAsk={mayAsk} />
          ))}
        </ul>
      )}
      {people.length > 0 && (
        <details className="menu">
          <summary>Ask for a review</summary>
          <div className="menu-items">
            {people.map(({ id, name }) => (
              <button key={id} type="button" onClick={() => void perform(() => ask(change, id))}>
                {change.reviewers.some((reviewer) => reviewer.id === id) ? `${name}, again` : name}
              </button>
            ))}
          </div>
        </details>
      )}
    </section>
  );
};
