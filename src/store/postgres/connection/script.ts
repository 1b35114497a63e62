/** Several statements in one text. The protocol of prepared statements, which sql-pg uses for all, takes one at a time. */

/** Two marks that no script has: they quote the block and the script. */
const [BLOCK, SCRIPT] = ["$platform_block$", "$platform_script$"];

/** The statements of a text as one. They begin and end no transaction. */
export const asOneStatement = (text: string): string => {
  if (text.includes(BLOCK) || text.includes(SCRIPT)) throw new Error("the script has our marks");
  return `DO ${BLOCK} BEGIN EXECUTE ${SCRIPT}${text}${SCRIPT}; END ${BLOCK}`;
};
