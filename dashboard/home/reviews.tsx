/** Change requests that wait for the reader's review. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { projectLink } from "../elements/parts.ts";
import { ActivityIcon } from "../ui/activity.tsx";
import { Prose, Time } from "../ui/parts.tsx";
import type { Filter } from "./filter.ts";

export type Review = Answer<"GET /v1/change-requests">["change_requests"][number];

const SHOWN = 50;

export const reviewsQuery = queryOptions({
  queryKey: ["reviews"],
  queryFn: async () => {
    const answer = await request("GET /v1/change-requests", { query: { reviewer: "me", limit: SHOWN } });
    return answer.change_requests;
  },
});

/** Whether the list has it. A review is no session, so that it has no starter and is never archived. */
const isIn = (
  { project, by, search, archived }: Filter,
  { project_id: id, title }: Pick<Review, "project_id" | "title">,
): boolean =>
  archived === "" &&
  by === "" &&
  (project === "" || project === id) &&
  title.toLowerCase().includes(search.toLowerCase());

/** Newest first. */
export const useReviews = (filter: Filter): readonly Review[] => {
  const { data = [] } = useQuery(reviewsQuery);
  return data.filter((review) => isIn(filter, review));
};

interface RowParts {
  readonly review: Review;
  /** Its name. */
  readonly project: string | undefined;
}

export const ReviewRow = ({ review, project }: RowParts) => {
  const { project_id: pid, number, title, review_asked: asked } = review;
  const about = [project ?? "Another project", `#${number}`].join(" · ");
  const link = projectLink(pid, `/change-requests/${number}`);
  return (
    <li className="session">
      <div className="row">
        <ActivityIcon activity="needs_you" />
        <span className="row-main">
          <a className="cover" href={link} title={title}>
            <Prose text={title} />
          </a>
          <span className="line asks-line">
            <Prose text={`${asked?.by.name ?? ""} asks for your review`} />
          </span>
        </span>
        <span className="meta">
          <span className="quiet about" title={about}>
            {about}
          </span>
          <span className="facts-of-work">{asked !== null && <Time at={asked.at} />}</span>
          <a className="button opener" href={link} aria-label={`Review: ${title}`}>
            Review
          </a>
        </span>
      </div>
    </li>
  );
};
