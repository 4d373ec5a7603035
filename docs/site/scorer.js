/* Guides before the reference, the reference before what lists the whole of the project. */
var Scorer = {
  score: ([docname, title, anchor, descr, score]) => {
    const later = /^(changelog|contributing|glossary|evidence\/|explanation\/)/;
    if (docname.startsWith("reference/")) return score / 8;
    return later.test(docname) ? score / 4 : score;
  },
  objNameMatch: 30,
  objPartialMatch: 4,
  objPrio: { 0: 0, 1: 0, 2: 0 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
