/** Lists of the API that a reader sees page by page. */
import { infiniteQueryOptions, type QueryKey } from "@tanstack/react-query";

const PAGE = 50;

/** The query of one page. */
interface Part {
  readonly limit: number;
  readonly cursor?: string;
}

export const pagedQuery = <A extends { readonly next_cursor: string | null }>(
  queryKey: QueryKey,
  read: (query: Part) => Promise<A>,
) =>
  infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam }) => read({ limit: PAGE, ...(pageParam !== null && { cursor: pageParam }) }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next_cursor: next }) => next,
  });
