"""Top level domains that make a name with a dot and a path a link: the common ones, and those that spam likes."""

from __future__ import annotations

_NAMES = (
    "com org net edu gov mil int info biz name pro app dev page shop store site online club xyz top live link click"
    " cloud email news media world today tech agency digital software rocks watch bank museum travel jobs mobi aero"
    " coop group company solutions services support team works zone space website fun icu vip wiki blog art design"
    " studio systems network academy care city community finance health help house life ltd market marketing one photos"
    " social technology tools training video ninja guru win loan stream download review cam global center events"
    " expert express fund games gold guide land legal money plus press sale school show style tips tours trade wtf"
    " sbs bond cfd quest hair lol beauty makeup skin monster rest autos boats homes motorcycles yachts buzz cyou pics"
    " mom bid date faith men party racing science webcam rent sucks dad foo nexus phd prof esq ing meme day tel chat"
    " codes coffee cool deals dental direct estate exchange farm fashion fish fit fitness football foundation gallery"
    " garden gifts gives glass golf gratis holiday host hosting immo ink insure kitchen lawyer lgbt limo loans luxe mba"
    " menu mortgage observer ong partners photo pink pizza plumbing poker productions properties property pub realty"
    " recipes rehab rentals repair reviews rip salon schule security services sex sexy shoes singles ski soccer solar"
    " study supply surgery tax taxi tennis tires toys university uno vacations vegas ventures vision voyage wedding"
    " xxx yoga africa berlin london nyc paris tokyo miami eus cfo ceo boutique cash credit casino bet bingo lotto"
    " io co me tv ly gl gg ai to be am fm im is in us uk ca au nz ie de at ch li fr es it pt br mx ar cl pe uy ve ec bo"
    " nl lu dk se no fi ee lv lt pl ru su ua by kz cz sk hu ro bg gr tr il jp cn tw hk kr sg my th vn id ph za eu asia"
    " lat cat rs hr ba mk al ge az uz ma tn eg ng ke gh sa ae qa kw ir pk lk np bd cc ms ws la vc gd gs st cx mu ga cf"
    " ml tk gq nu ky bz pw ac ag as ad cm cr cu do gt hn ni pa py sv pr tt mc mt cy re"
    " example test invalid local onion рф укр бел срб бг ελ"
)
_ANY_OF = _NAMES.replace(" ", "|")
TLD = f"(?:{_ANY_OF}|{_ANY_OF.upper()}|Com|Net|Org)"
"""In one case, or the three that some write with a capital: `maybe.In/out` is two sentences."""
LETTER = "a-zA-Z0-9\u00c0-\u024f\u0370-\u0523"
"""Letters of names in the scripts that put blanks between words."""
